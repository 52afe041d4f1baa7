#include "http/chunked.hpp"
#include "idem/limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace idem::http {
namespace {

struct Decoded {
  std::string data;
  bool finished = false;
  int status = 0;  ///< Of the refusal; 0 where there was none.
  std::string detail;
  std::size_t consumed = 0;
};

Decoded decode(std::string_view input, std::size_t piece = std::string_view::npos) {
  Decoded decoded;
  ChunkDecoder decoder;
  while (!input.empty()) {
    const auto step = decoder.feed(input.substr(0, piece));
    if (!step) {
      decoded.status = step.error().status;
      decoded.detail = step.error().detail;
      return decoded;
    }
    EXPECT_TRUE(step->finished || step->consumed > 0) << "no progress";
    decoded.data += step->data;
    decoded.consumed += step->consumed;
    input.remove_prefix(step->consumed);
    if (step->finished) {
      decoded.finished = true;
      return decoded;
    }
  }
  return decoded;
}

/// One chunk "hello" whose size line is `line` (with its end), then the last chunk.
Decoded with_size_line(std::string_view line) {
  return decode(std::string(line) + "hello\r\n0\r\n\r\n");
}

bool right(const Decoded& decoded) { return decoded.finished && decoded.data == "hello"; }

TEST(Chunked, bodies_are_decoded) {
  EXPECT_EQ(decode("0\r\n\r\n").data, "");
  EXPECT_TRUE(decode("0\r\n\r\n").finished);
  const auto decoded = decode("5\r\nhello\r\n6\r\n world\r\n000\r\n\r\nGET /");
  EXPECT_EQ(decoded.data, "hello world");
  EXPECT_TRUE(decoded.finished);
  EXPECT_EQ(decoded.consumed, 28u) << "what follows belongs to the next message";
  EXPECT_EQ(decode("A\r\n0123456789\r\n0\r\n\r\n").data, "0123456789");
  EXPECT_EQ(decode("a\r\n0123456789\r\n0\r\n\r\n").data, "0123456789");
  EXPECT_TRUE(right(with_size_line("0005\r\n")));
}

TEST(Chunked, an_unfinished_body_is_not_finished) {
  const std::string body = "5\r\nhello\r\n0;a=\"b\"\r\nX: y\r\n\r\n";
  for (std::size_t bytes = 0; bytes < body.size(); ++bytes) {
    const auto decoded = decode(body.substr(0, bytes));
    EXPECT_FALSE(decoded.finished) << bytes;
    EXPECT_EQ(decoded.status, 0) << bytes << decoded.detail;
    EXPECT_EQ(decoded.consumed, bytes);
  }
  EXPECT_TRUE(decode(body).finished);
}

TEST(Chunked, data_is_a_view_into_the_input) {
  const std::string body = "5\r\nhello\r\n";
  ChunkDecoder decoder;
  const auto step = decoder.feed(body);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->data.data(), body.data() + 3);
  EXPECT_EQ(step->data, "hello");
}

TEST(Chunked, P12_sizes_are_hexadecimal_and_nothing_else) {
  for (const char* line : {"+5\r\n", "-5\r\n", "0x5\r\n", " 5\r\n", "\t5\r\n", "5 \r\n", "5\t\r\n",
                           "5_0\r\n", "\r\n", ";a\r\n", "g\r\n", "5,5\r\n", "5.0\r\n", "5h\r\n"}) {
    EXPECT_EQ(with_size_line(line).status, 400) << line;
  }
}

TEST(Chunked, P12_sizes_do_not_overflow) {
  ChunkDecoder decoder;
  const std::string largest = "7fffffffffffffff\r\nx";
  const auto step = decoder.feed(largest);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->data, "x");
  EXPECT_EQ(decode("8000000000000000\r\n").status, 400);
  EXPECT_EQ(decode("ffffffffffffffff\r\n").status, 400);
  EXPECT_EQ(decode("10000000000000005\r\n").status, 400);
  EXPECT_EQ(decode("FFFFFFFFFFFFFFFF0\r\n").status, 400);
  EXPECT_TRUE(right(with_size_line("0000000000000005\r\n")));
  EXPECT_EQ(with_size_line("00000000000000005\r\n").status, 400) << "17 digits";
}

TEST(Chunked, P12_every_crlf_is_exact) {
  for (const char* body :
       {"5\nhello\r\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello!!\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\r\n\rX",
        "5\r\r\nhello\r\n0\r\n\r\n", "5\r\nhell\r\n0\r\n\r\n", "5\r\nhello\r\r\n0\r\n\r\n"}) {
    EXPECT_EQ(decode(body).status, 400) << body;
  }
}

TEST(Chunked, P12_extensions_are_read_and_forgotten) {
  for (const char* line : {"5;a\r\n", "5;a=b\r\n", "5;a=b;c\r\n", "5; some; parameters=stuff\r\n",
                           "5;a=\"b c\"\r\n", "5;a=\";\\\"=\t\\\\ \xff\";b\r\n", "5;a=\"\"\r\n"}) {
    EXPECT_TRUE(right(with_size_line(line))) << line;
  }
  for (const char* line : {"5;\r\n",
                           "5; \r\n",
                           "5;;a\r\n",
                           "5;a=\r\n",
                           "5;=b\r\n",
                           "5 ;a\r\n",
                           "5;a \r\n",
                           "5;a =b\r\n",
                           "5;a= b\r\n",
                           "5;a=\"b\r\n",
                           "5;a=\"b\"c\r\n",
                           "5;a=b\"\r\n",
                           "5;a\n",
                           "5;a\rX\r\n",
                           "5;a=\"b\n\"\r\n",
                           "5;a=\"b\\\n\"\r\n",
                           "5;a=\"\r\n\"\r\n",
                           "5;a\x01\r\n",
                           "5;a=\x7f\r\n",
                           "5;(a)\r\n",
                           "5;a=b c\r\n",
                           "5;\xff\r\n"}) {
    EXPECT_EQ(with_size_line(line).status, 400) << line;
  }
  EXPECT_EQ(with_size_line(std::string("5;\0x\r\n", 6)).status, 400);
  EXPECT_EQ(with_size_line(std::string("5;a=\"\0\"\r\n", 9)).status, 400);
}

TEST(Chunked, P12_a_size_line_has_a_bound) {
  const std::string longest = "5;" + std::string(limits::chunk_line_bytes_max - 2, 'a');
  EXPECT_TRUE(right(with_size_line(longest + "\r\n")));
  EXPECT_EQ(with_size_line(longest + "a\r\n").status, 400);
  EXPECT_EQ(decode("5; " + std::string(limits::chunk_line_bytes_max, ' ')).status, 400);
  EXPECT_EQ(decode("5;a=\"" + std::string(limits::chunk_line_bytes_max, '\\')).status, 400);
  // The bound is one line's, not the body's.
  std::string body;
  for (int i = 0; i < 20; ++i) body += longest + "\r\nhello\r\n";
  EXPECT_TRUE(decode(body + "0\r\n\r\n").finished);
}

TEST(Chunked, P13_trailers_are_checked_and_dropped) {
  const std::string body = "5\r\nhello\r\n0\r\n";
  EXPECT_TRUE(right(decode(body + "Vary: *\r\nX-Sum:\t\xff \r\n\r\n")));
  for (const char* forbidden : {"Content-Length: 99", "Transfer-Encoding: chunked", "Host: evil",
                                "Authorization: x", "Idempotency-Key: y"}) {
    EXPECT_TRUE(right(decode(body + forbidden + "\r\n\r\n"))) << forbidden;
  }
  for (const char* trailer :
       {"X : y\r\n\r\n", " X: y\r\n\r\n", "X: y\r\n z\r\n\r\n", "NoColon\r\n\r\n",
        "X: a\nY: b\r\n\r\n", "X: a\rY: b\r\n\r\n", ": y\r\n\r\n", "X(: y\r\n\r\n",
        "X: \x01\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"}) {
    EXPECT_EQ(decode(body + trailer).status, 400) << trailer;
  }
}

TEST(Chunked, P13_the_trailer_section_has_a_bound) {
  const std::string line = "X: " + std::string(1019, 'v') + "\r\n";
  std::string trailers;
  while (trailers.size() + line.size() <= limits::trailer_bytes_max - 2) trailers += line;
  EXPECT_TRUE(decode("0\r\n" + trailers + "\r\n").finished);
  EXPECT_EQ(decode("0\r\n" + trailers + line + line + "\r\n").status, 431);
  EXPECT_EQ(decode("0\r\n" + std::string(limits::trailer_bytes_max + 1, 'a')).status, 431);
}

TEST(Chunked, pieces_do_not_change_the_outcome) {
  for (const std::string body :
       {"5\r\nhello\r\n6;a=\"b\\\"\"\r\n world\r\n0\r\nX: y\r\nZ:\r\n\r\nmore",
        "5\r\nhello\r\n0\r\nX: y\r\n bad\r\n\r\n", "5\r\nhello!\r\n", "5\r\nhello\r\n0\r\n\rX",
        "5\r\nhello\r\n0\r\nA\rB: c\r\n\r\n", "5;a\rb", "ffffffffffffffffff"}) {
    const auto whole = decode(body);
    for (std::size_t piece = 1; piece < body.size(); ++piece) {
      const auto pieces = decode(body, piece);
      EXPECT_EQ(pieces.data, whole.data);
      EXPECT_EQ(pieces.finished, whole.finished);
      EXPECT_EQ(pieces.status, whole.status) << body;
      EXPECT_EQ(pieces.detail, whole.detail) << body;
      if (whole.finished) {
        EXPECT_EQ(pieces.consumed, whole.consumed);
      }
    }
  }
}

TEST(Chunked, a_refusal_and_the_end_stay_until_reset) {
  ChunkDecoder decoder;
  EXPECT_FALSE(decoder.feed("x"));
  EXPECT_FALSE(decoder.feed("0\r\n\r\n"));
  decoder.reset();
  ASSERT_TRUE(decoder.feed("0\r\n\r\n"));
  const auto after = decoder.feed("5\r\nhello");
  ASSERT_TRUE(after);
  EXPECT_TRUE(after->finished);
  EXPECT_EQ(after->consumed, 0u);
}

TEST(Chunked, encoded_bytes_can_be_decoded) {
  std::string body;
  append_chunk(body, "hello");
  append_chunk(body, "");
  append_chunk(body, std::string(1000, 'x'));
  EXPECT_EQ(body.substr(0, 10), "5\r\nhello\r\n");
  EXPECT_EQ(body.substr(10, 5), "3e8\r\n");
  body += last_chunk;
  const auto decoded = decode(body);
  EXPECT_TRUE(decoded.finished);
  EXPECT_EQ(decoded.data, "hello" + std::string(1000, 'x'));
}

}  // namespace
}  // namespace idem::http
