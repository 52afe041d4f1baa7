#include <gtest/gtest.h>

#include <string>

#include "support/broken_chunks.hpp"
#include "support/json.hpp"
#include "support/live.hpp"
#include "support/scripted_upstream.hpp"

/// The rules of HTTP on the client's side of the gateway, over TCP.
namespace idem::test {
namespace {

using WireRequests = Live;

TEST_F(WireRequests, P12_broken_chunks_are_refused_and_nothing_runs) {
  for (const bool keyed : {true, false}) {
    for (const auto& body : broken_chunks()) {
      SCOPED_TRACE(body);
      auto request = with(charge("k", "", ""), "Transfer-Encoding", "chunked");
      if (!keyed) request = without(request, "Idempotency-Key");
      if (!keyed) request.method = "PUT";
      request.body = body;
      Connection client(gateway_->address());
      client.send(request);
      EXPECT_TRUE(is_problem(client.read_response(), 400, "bad_request"));
      EXPECT_TRUE(client.closed_by_peer()) << "where the next request begins is not known";
    }
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_EQ(ask(charge("k")).status, 201) << "and nothing was reserved";
}

TEST_F(WireRequests, P13_trailers_of_a_relayed_request_are_dropped) {
  ScriptedUpstream upstream(ScriptedUpstream::answer_all);
  auto options = this->options(upstream.address());
  options.store = dir_.path() / "scripted.db";
  const Gateway gateway(options);
  for (const char* method : {"PUT", "POST"}) {
    auto request = with(charge(method, "", ""), "Transfer-Encoding", "chunked");
    request = with(request, "Trailer", "X-Sum");
    request.method = method;
    if (request.method == "PUT") request = without(request, "Idempotency-Key");
    request.body = "2\r\n{}\r\n0\r\nX-Sum: 1\r\nContent-Length: 7\r\n\r\n";
    EXPECT_EQ(send_once(gateway.address(), request).status, 200);
  }
  EXPECT_EQ(upstream.requests(), 2);
  for (const auto& bytes : upstream.received()) {
    EXPECT_EQ(bytes.find("X-Sum"), std::string::npos) << bytes;
    EXPECT_EQ(bytes.find("Content-Length: 7"), std::string::npos) << bytes;
  }
}

TEST_F(WireRequests, P16_ours_comes_after_the_via_that_was_there) {
  const auto answer = ask({.method = "GET",
                           .target = "/echo",
                           .fields = {{"Via", "1.0 first, 1.1 second"}, {"Via", "1.1 third"}}});
  const auto via = echoed(answer, "Via");
  ASSERT_EQ(via.size(), 3U);
  EXPECT_EQ(via[0], "1.0 first, 1.1 second");
  EXPECT_EQ(via[1], "1.1 third");
  EXPECT_TRUE(via[2].starts_with("1.1 idem-")) << via[2];
}

TEST_F(WireRequests, P26_the_refusal_of_a_too_long_request_arrives_though_the_client_still_sends) {
  const std::string long_target = "GET /" + std::string(150'000, 'a');
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += "X-" + std::to_string(i) + ": a\r\n";
  const std::string long_head = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(150'000, 'a');
  auto announced = with(charge("k", "", ""), "Content-Length", "1048577");
  struct {
    std::string bytes;
    int status;
    const char* code;
  } const cases[] = {{long_target, 414, "uri_too_long"},
                     {long_head, 431, "headers_too_large"},
                     {"GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n", 431, "headers_too_large"},
                     {to_wire(announced) + std::string(150'000, 'x'), 413, "body_too_large"}};
  for (const auto& large : cases) {
    SCOPED_TRACE(large.code);
    Connection client(gateway_->address());
    client.send_raw(large.bytes);
    const auto answer = client.read_response();
    EXPECT_TRUE(is_problem(answer, large.status, large.code));
    EXPECT_EQ(answer.get("Connection"), "close");
    EXPECT_TRUE(client.closed_by_peer());
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(WireRequests, P28_unknown_methods_go_on_as_they_are) {
  for (const char* method : {"PURGE", "purge", "M-SEARCH"}) {
    const auto answer = ask({.method = method, .target = "/echo"});
    const auto json = parse_json(answer.body);
    ASSERT_TRUE(json) << answer.raw;
    EXPECT_EQ((*json)["method"].string, method);
  }
}

TEST_F(WireRequests, P29_http_1_0_is_kept_only_where_it_asks_for_it_and_no_proxy_is_between) {
  const std::string head = "GET /charges/ch_1 HTTP/1.0\r\n";
  Connection kept(gateway_->address());
  for (int i = 0; i < 2; ++i) {
    kept.send_raw(head + "Connection: keep-alive\r\n\r\n");
    const auto answer = kept.read_response();
    EXPECT_EQ(answer.status, 404);
    EXPECT_EQ(answer.get("Connection"), "keep-alive") << "HTTP/1.0 needs it";
  }
  // A proxy that does not understand Connection passes it on, and waits for an end that would not
  // come (RFC 9112 appendix C.2.2).
  for (const char* fields :
       {"Proxy-Connection: keep-alive\r\n\r\n", "Connection: keep-alive\r\nVia: 1.0 old\r\n\r\n",
        "Connection: keep-alive, close\r\n\r\n"}) {
    SCOPED_TRACE(fields);
    Connection closed(gateway_->address());
    closed.send_raw(head + fields);
    const auto answer = closed.read_response();
    EXPECT_EQ(answer.status, 404);
    EXPECT_EQ(answer.get("Connection"), "close");
    EXPECT_TRUE(closed.closed_by_peer());
  }
}

TEST_F(WireRequests, P20_http_1_0_is_never_sent_chunks) {
  Connection client(gateway_->address());
  client.send_raw("PUT /charges?fault=chunked HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}");
  const auto bytes = client.read_until_close();
  EXPECT_TRUE(bytes.starts_with("HTTP/1.1 201")) << bytes;
  EXPECT_EQ(bytes.find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(bytes.ends_with("}")) << bytes;
}

}  // namespace
}  // namespace idem::test
