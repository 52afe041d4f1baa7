#include "gateway/keyed/explained_head.hpp"

#include <gtest/gtest.h>

namespace idem::gateway {
namespace {

RequestInQuestion post(std::vector<Field> headers = {}, std::string body = {}) {
  return {
      .method = "POST", .target = "/a?b=1", .headers = std::move(headers), .body = std::move(body)};
}

std::string refused_place(const RequestInQuestion& request) {
  const auto why = ExplainedHead::why_not(request);
  return why ? why->substr(0, why->find(':')) : "";
}

TEST(ExplainedHead, is_read_by_the_parser_of_requests) {
  ExplainedHead read(post({{"A", " 1 "}, {"Content-Length", "3"}}, "xyz"));
  ASSERT_TRUE(read.parse());
  EXPECT_EQ(read.head().method, "POST");
  EXPECT_EQ(read.head().origin_form, "/a?b=1");
  EXPECT_EQ(read.head().host, "localhost");
  EXPECT_EQ(read.head().fields.at(1).value, "1");
  ExplainedHead named(post({{"host", "api.example.org"}}));
  ASSERT_TRUE(named.parse());
  EXPECT_EQ(named.head().host, "api.example.org");
}

TEST(ExplainedHead, P07_P11_what_the_parser_refuses_is_refused) {
  const auto status = [](const RequestInQuestion& request) {
    EXPECT_EQ(refused_place(request), "");
    const auto parsed = ExplainedHead(request).parse();
    return parsed ? 0 : parsed.error().status;
  };
  EXPECT_EQ(status(post({{"A", std::string("a\0b", 3)}})), 400);
  EXPECT_EQ(status(post({{"A b", "1"}})), 400);
  EXPECT_EQ(status(post({{"Content_Length", "1"}})), 400);
  EXPECT_EQ(status(post({{"A", std::string(20'000, 'a')}})), 431);
  auto request = post();
  request.method = "PO ST";
  EXPECT_EQ(status(request), 400);
  request.method = "";
  EXPECT_EQ(status(request), 400);
  request = post();
  request.target = "/a HTTP/1.0";
  EXPECT_EQ(status(request), 400);
}

TEST(ExplainedHead, P07_parts_that_would_become_other_parts_are_named) {
  EXPECT_EQ(refused_place(post({{"A", "1"}, {"B", "1\r\nC: 2"}})), "/headers/1");
  EXPECT_EQ(refused_place(post({{"A\n", "1"}})), "/headers/0");
  EXPECT_EQ(refused_place(post({{"A:B", "1"}})), "/headers/0");
  EXPECT_EQ(refused_place(post({{"", "1"}})), "/headers/0");
  EXPECT_EQ(refused_place(post({{"content-length", "2"}}, "abc")), "/headers/0");
  auto request = post();
  request.method = "GET / HTTP/1.1\r\nX: ";
  EXPECT_EQ(refused_place(request), "/method");
  request = post();
  request.target = "/ HTTP/1.1\r\n\r\n";
  EXPECT_EQ(refused_place(request), "/target");
  request = post();
  request.scope = "";
  EXPECT_EQ(refused_place(request), "/scope");
}

}  // namespace
}  // namespace idem::gateway
