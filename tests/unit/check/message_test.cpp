#include "check/wire/message.hpp"

#include <gtest/gtest.h>

/// How the tester writes requests, and reads what any server answers.
namespace idem::check {
namespace {

/// The answer of bytes that arrive one by one; none: it is not whole.
std::optional<Answer> read_answer(std::string_view bytes, bool ends = false) {
  AnswerReader reader;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (reader.add(bytes.substr(i, 1))) return reader.take();
    if (!reader.failure().empty()) return std::nullopt;
  }
  if (ends && reader.end()) return reader.take();
  return std::nullopt;
}
std::string failure_of(std::string_view bytes) {
  AnswerReader reader;
  EXPECT_FALSE(reader.add(bytes) || reader.end());
  return reader.failure();
}

TEST(CheckMessage, a_request_is_sent_as_the_case_writes_it) {
  Request request{.method = "POST", .target = "/p?x=1", .fields = {{"a", "1"}}, .body = "{}"};
  request.set("A", "2");
  request.fields.emplace_back("Idempotency-Key", "k");
  request.fields.emplace_back("Idempotency-Key", "l");
  EXPECT_EQ(request.bytes("h:1"),
            "POST /p?x=1 HTTP/1.1\r\nHost: h:1\r\nA: 2\r\nIdempotency-Key: k\r\n"
            "Idempotency-Key: l\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
  request.remove("idempotency-key");
  EXPECT_EQ(request.fields.size(), 1U);
}

TEST(CheckMessage, an_answer_is_whole_with_its_length_its_last_chunk_or_its_connection) {
  const auto by_length =
      read_answer("HTTP/1.1 201 Created\r\nContent-Length: 2\r\nx-A:  b \r\n\r\n{}rest");
  ASSERT_TRUE(by_length);
  EXPECT_EQ(by_length->status, 201);
  EXPECT_EQ(by_length->body, "{}");
  EXPECT_EQ(*by_length->find("X-a"), "b");
  const auto chunked = read_answer(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n\r\n");
  ASSERT_TRUE(chunked);
  EXPECT_EQ(chunked->body, "abcd");
  EXPECT_EQ(chunked->decoded(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nabcd");
  EXPECT_FALSE(read_answer("HTTP/1.1 200 OK\r\n\r\nabc"));
  EXPECT_EQ(read_answer("HTTP/1.1 200 OK\r\n\r\nabc", true)->body, "abc");
  EXPECT_EQ(read_answer("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n")->body, "");
}

TEST(CheckMessage, interim_answers_are_passed_over) {
  const auto answer = read_answer(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->find("A"), nullptr);
}

TEST(CheckMessage, what_is_no_answer_says_why) {
  EXPECT_EQ(failure_of(""), "the connection was closed without an answer");
  EXPECT_EQ(failure_of("SSH-2.0-x\r\n\r\n"), "what came back is no answer of HTTP/1.1");
  EXPECT_EQ(failure_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
            "the connection was closed within the body of the answer");
  EXPECT_EQ(failure_of("HTTP/1.1 200"), "the connection was closed within the head of the answer");
  EXPECT_EQ(failure_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            "a chunk of the answer has no size");
  EXPECT_EQ(failure_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff"),
            "the connection was closed within a chunked body");
  EXPECT_EQ(failure_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "ffffffffffffffff\r\nabc"),
            "a chunk of the answer has no end");
  EXPECT_EQ(failure_of("HTTP/1.1 2x0 OK\r\n\r\n"), "the answer has no status");
}

}  // namespace
}  // namespace idem::check
