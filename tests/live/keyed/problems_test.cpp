#include <gtest/gtest.h>

#include <string>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Problems = Live;

TEST_F(Problems, S13_requests_that_http_itself_forbids) {
  struct {
    const char* name;
    std::string bytes;
    int status;
    const char* code;
  } const cases[] = {
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400, "bad_request"},
      {"two lengths",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400,
       "bad_request"},
      {"long line", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414,
       "uri_too_long"},
      {"long head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20'000, 'a') + "\r\n\r\n", 431,
       "headers_too_large"},
      {"other version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "version_not_supported"},
      {"other coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501,
       "not_implemented"},
      {"other expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417,
       "expectation_failed"},
  };
  for (const auto& broken : cases) {
    SCOPED_TRACE(broken.name);
    Connection client(gateway_->address());
    client.send_raw(broken.bytes);
    const auto answer = client.read_response();
    EXPECT_TRUE(is_problem(answer, broken.status, broken.code));
    EXPECT_EQ(json_text(answer.body, "retry"), "never");
    EXPECT_TRUE(client.closed_by_peer()) << "what follows cannot be trusted";
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(Problems, P26_a_body_above_the_limit_is_refused_and_nothing_runs) {
  const auto large = charge("k", "", std::string(1'048'577, 'x'));
  const auto answer = ask(large);
  EXPECT_TRUE(is_problem(answer, 413, "body_too_large"));
  EXPECT_EQ(ask(charge("k", "", std::string(1'048'576, 'x'))).status, 201);
  EXPECT_EQ(provider_->ledger().arrivals, 1);
}

TEST_F(Problems, P26_a_chunked_body_above_the_limit_too) {
  auto request = with(charge("k", "", ""), "Transfer-Encoding", "chunked");
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  for (int i = 0; i < 17; ++i) request.body += chunk;
  request.body += "0\r\n\r\n";
  EXPECT_TRUE(is_problem(ask(request), 413, "body_too_large"));
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(Problems, their_type_is_a_page_of_ours) {
  const auto problem = ask(without(charge("k"), "Idempotency-Key"));
  const auto type = json_text(problem.body, "type");
  EXPECT_TRUE(type.ends_with("/.idem/problems/key_missing")) << type;
  EXPECT_EQ(ask({.method = "GET", .target = type}).status, 200);
}

TEST_F(Problems, an_answer_to_head_has_no_body) {
  Connection client(gateway_->address());
  client.send_raw("HEAD /echo HTTP/1.1\r\nHost: a\r\nVia: 1.1 x\r\nExpect: nonsense\r\n\r\n");
  const auto answer = client.read_response(true);
  EXPECT_GE(answer.status, 200);
  client.send_raw("GET /charges/ch_1 HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto next = client.read_response();
  EXPECT_TRUE(next.status == 404 || next.trouble == "closed") << next.raw;
}

TEST_F(Problems, P28_connect_and_upgrade_are_not_served) {
  Connection client(gateway_->address());
  client.send_raw("CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\n");
  EXPECT_GE(client.read_response().status, 400);
  auto upgrade = with(with(charge("k"), "Connection", "Upgrade"), "Upgrade", "websocket");
  EXPECT_NE(ask(upgrade).status, 101);
}

}  // namespace
}  // namespace idem::test
