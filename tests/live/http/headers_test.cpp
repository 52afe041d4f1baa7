#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/json.hpp"
#include "support/live.hpp"

namespace idem::test {
namespace {

class Headers : public Live {
 protected:
  std::vector<std::string> flags() const override {
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << "routes: [{match: {path: \"/charges\"}, fingerprint: {headers: "
                           "[X-Account]}}]\n";
    return {"--config", file};
  }
};
using Values = std::vector<std::string>;

Request echo_charge(std::string_view key, std::string_view faults = {}) {
  auto request = charge(key, faults);
  request.target = "/echo";
  return request;
}

TEST_F(Headers, idem_fields_of_the_client_stop_here_and_ours_reach_the_upstream) {
  auto request = echo_charge("k");
  for (const auto* name :
       {"Idem-Operation", "Idem-Fence", "Idem-Attempt", "idem-outcome", "Idem-Anything"}) {
    request = with(request, name, "forged");
  }
  const auto answer = ask(request);
  ASSERT_EQ(answer.status, 201) << answer.raw;
  for (const auto* name : {"Idem-Operation", "Idem-Fence", "Idem-Attempt"}) {
    const auto values = echoed(answer, name);
    ASSERT_EQ(values.size(), 1U) << name;
    EXPECT_NE(values[0], "forged");
    EXPECT_NE(values[0], "");
  }
  const auto fence = echoed(answer, "Idem-Fence")[0];
  EXPECT_TRUE(std::all_of(fence.begin(), fence.end(), [](char c) { return c >= '0' && c <= '9'; }));
  EXPECT_TRUE(echoed(answer, "Idem-Outcome").empty());
  EXPECT_TRUE(echoed(answer, "Idem-Anything").empty());
}

// A server that puts `_` for `-`, or drops both, would read either as ours.
TEST_F(Headers, fields_that_a_server_may_read_as_ours_stop_here) {
  const auto disguised = {"Idem_Attempt", "IDEM.FENCE",    "IdemOperation",
                          "idem_scope",   "-Idem-Attempt", "Id_em-Fence",
                          "Idem_Any",     "idem.any",      "Idem~Any"};
  auto request = echo_charge("k");
  for (const auto* name : disguised) request = with(request, name, "forged");
  const auto answer = ask(with(request, "Idempotent", "mine"));
  ASSERT_EQ(answer.status, 201) << answer.raw;
  for (const auto* name : disguised) EXPECT_TRUE(echoed(answer, name).empty()) << name;
  EXPECT_EQ(echoed(answer, "Idempotent"), Values{"mine"});
}

// No client escapes a field's name, and a server that decodes it sees another field than we did.
TEST_F(Headers, T33_escaped_field_names_are_refused) {
  for (const auto* name : {"Idem%2dFence", "Idem%2DFence", "%49dem-Fence", "X%2DTenant-Id",
                           "Idempotency%2dKey", "X%5FAny"}) {
    EXPECT_TRUE(is_problem(ask(with(charge("k"), name, "forged")), 400, "bad_request")) << name;
    const Request unkeyed{.method = "GET", .target = "/echo", .fields = {{name, "forged"}}};
    EXPECT_TRUE(is_problem(ask(unkeyed), 400, "bad_request")) << name;
  }
  const Request plain{.method = "GET", .target = "/echo", .fields = {{"X-100%", "1"}}};
  EXPECT_EQ(echoed(ask(plain), "X-100%"), Values{"1"});
  EXPECT_EQ(provider_->ledger().effects, 0);
}

// The upstream would see a request of nobody, of another type or without what the record was made
// by. Also where there is no key: whose it is decides there, too.
TEST_F(Headers, P14_connection_names_nothing_that_is_relied_on) {
  for (const auto* name : {"X-Tenant-Id", "x-tenant-id", "X_Tenant_Id", "Content-Type",
                           "Content-Encoding", "Cookie", "X-Forwarded-For", "Forwarded", "Via"}) {
    const auto option = "keep-alive, " + std::string(name);
    EXPECT_TRUE(is_problem(ask(with(charge("k"), "Connection", option)), 400, "bad_request"))
        << name;
    const Request unkeyed{.method = "GET",
                          .target = "/echo",
                          .fields = {{"X-Tenant-Id", "acme"}, {"Connection", option}}};
    EXPECT_TRUE(is_problem(ask(unkeyed), 400, "bad_request")) << name;
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(Headers, P14_two_content_types_are_refused) {
  const auto two = with(charge("k"), "content-type", "text/plain");
  EXPECT_TRUE(is_problem(ask(with(two, "Content-Type", "application/json")), 400, "bad_request"));
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

// CGI and WSGI read Content_Encoding and Content-Encoding as one variable: the upstream would see
// another request than the fingerprint does.
TEST_F(Headers, P14_no_field_poses_as_one_that_the_fingerprint_reads) {
  const auto first = ask(charge("k"));
  EXPECT_EQ(first.status, 201) << first.raw;
  for (const auto* name : {"Content_Encoding", "content.encoding", "ContentEncoding",
                           "Content_Type", "Content-Type-", "X_Account"}) {
    EXPECT_TRUE(replays(first, ask(with(charge("k"), name, "br")))) << "it has a record: " << name;
    EXPECT_TRUE(is_problem(ask(with(charge("new"), name, "br")), 400, "bad_request")) << name;
  }
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_EQ(ask(with(charge("other"), "X-Account", "1")).status, 201) << "the real one";
  EXPECT_EQ(provider_->ledger().arrivals, 2);
  const Request unkeyed{.method = "GET", .target = "/echo", .fields = {{"Content_Type", "x"}}};
  EXPECT_EQ(echoed(ask(unkeyed), "Content_Type"), Values{"x"}) << "nothing is decided by it";
}

class HeadersOfRerun : public Live {
 protected:
  std::vector<std::string> flags() const override {
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << "routes: [{match: {path: \"/charges\"}, lease_policy: rerun, "
                           "repeating_is_safe: true}]\n";
    return {"--config", file};
  }
};

// Where a record whose lease is over runs again, the disguised request could be the one that runs.
TEST_F(HeadersOfRerun, P14_no_disguise_is_looked_up) {
  const auto first = ask(charge("k"));
  EXPECT_EQ(first.status, 201) << first.raw;
  EXPECT_TRUE(is_problem(ask(with(charge("k"), "Content_Type", "x")), 400, "bad_request"));
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Headers, S10_how_a_body_is_encoded_counts) {
  const auto gzip = with(charge("k"), "Content-Encoding", "gzip");
  const auto first = ask(gzip);
  EXPECT_EQ(first.status, 201) << first.raw;
  EXPECT_TRUE(replays(first, ask(gzip)));
  EXPECT_TRUE(replays(first, ask(gzip))) << "from memory";
  EXPECT_TRUE(is_problem(ask(charge("k")), 422, "key_reused"));
  const auto other = with(charge("k"), "Content-Encoding", "br");
  EXPECT_TRUE(is_problem(ask(other), 422, "key_reused"));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Headers, idem_fields_of_an_unkeyed_request_stop_here_too) {
  const auto answer =
      ask({.method = "GET", .target = "/echo", .fields = {{"Idem-Fence", "999"}, {"X-A", "1"}}});
  EXPECT_TRUE(echoed(answer, "Idem-Fence").empty());
  EXPECT_EQ(echoed(answer, "X-A"), Values{"1"});
}

TEST_F(Headers, idem_fields_of_the_upstream_stop_here) {
  const auto answer = ask(charge("k", "header=Idem-Reference:ref,header=Idem-Other:x"));
  for (const auto& field : answer.fields) {
    EXPECT_FALSE(same_name(std::string_view(field.name).substr(0, 5), "Idem-")) << field.name;
  }
}

TEST_F(Headers, the_key_is_forwarded_as_the_client_wrote_it) {
  EXPECT_EQ(echoed(ask(echo_charge("bare")), "Idempotency-Key"), Values{"bare"});
  EXPECT_EQ(echoed(ask(echo_charge(R"("quoted")")), "Idempotency-Key"), Values{R"("quoted")"});
}

TEST_F(Headers, P03_target_bytes_are_not_touched) {
  for (const auto* target :
       {"/echo?a=%2f%2F&b=1+2&a=3", "/echo?", "/echo?x=%00%ff&&=", "/echo/../echo//x;p=1"}) {
    const auto answer = ask({.method = "GET", .target = target});
    const auto json = parse_json(answer.body);
    ASSERT_TRUE(json) << answer.raw;
    EXPECT_EQ((*json)["target"].string, target);
  }
}

TEST_F(Headers, P02_an_absolute_target_names_the_host) {
  const auto answer = ask({.method = "GET",
                           .target = "http://shop.example/echo?x=1",
                           .fields = {{"Host", "other.example"}}});
  const auto json = parse_json(answer.body);
  ASSERT_TRUE(json) << answer.raw;
  EXPECT_EQ((*json)["target"].string, "/echo?x=1");
  EXPECT_EQ(echoed(answer, "Host"), Values{"shop.example"});
}

TEST_F(Headers, P14_hop_by_hop_fields_stop_here) {
  const auto answer = ask({.method = "GET",
                           .target = "/echo",
                           .fields = {{"Connection", "X-Hop, keep-alive"},
                                      {"X-Hop", "1"},
                                      {"Keep-Alive", "timeout=5"},
                                      {"Proxy-Connection", "keep-alive"},
                                      {"TE", "trailers"},
                                      {"X-End", "2"}}});
  for (const auto* name : {"X-Hop", "Keep-Alive", "Proxy-Connection", "TE"}) {
    EXPECT_TRUE(echoed(answer, name).empty()) << name;
  }
  EXPECT_EQ(echoed(answer, "X-End"), Values{"2"});
}

TEST_F(Headers, P13_trailers_never_join_the_headers) {
  auto request = with(echo_charge("k"), "Transfer-Encoding", "chunked");
  request.body = "2\r\n{}\r\n0\r\nX-Trailer: 1\r\nIdempotency-Key: other\r\n\r\n";
  const auto answer = ask(request);
  ASSERT_EQ(answer.status, 201) << answer.raw;
  EXPECT_TRUE(echoed(answer, "X-Trailer").empty());
  EXPECT_EQ(echoed(answer, "Idempotency-Key"), Values{"k"});
}

TEST_F(Headers, P16_adds_via_and_detects_a_loop) {
  const auto answer = ask({.method = "GET", .target = "/echo"});
  const auto via = echoed(answer, "Via");
  ASSERT_EQ(via.size(), 1U);
  const auto again = ask({.method = "GET", .target = "/echo", .fields = {{"Via", via[0]}}});
  EXPECT_TRUE(is_problem(again, 508, "loop_detected"));
  const auto other =
      ask({.method = "GET", .target = "/echo", .fields = {{"Via", "1.1 another-proxy"}}});
  EXPECT_EQ(other.status, 200);
}

TEST_F(Headers, P17_expect_is_answered_at_once) {
  Connection client(gateway_->address());
  auto request = with(charge("k", "", ""), "Expect", "100-continue");
  request = with(request, "Content-Length", "2");
  client.send(request);
  std::string interim;
  while (interim.find("\r\n\r\n") == std::string::npos &&
         client.socket().receive(interim) == Socket::Received::bytes) {
  }
  EXPECT_TRUE(interim.starts_with("HTTP/1.1 100")) << interim;
  client.send_raw("{}");
  EXPECT_EQ(client.read_response().status, 201);
}

TEST_F(Headers, P22_close_is_honoured) {
  Connection client(gateway_->address());
  EXPECT_EQ(client.exchange(with(charge("k"), "Connection", "close")).status, 201);
  EXPECT_TRUE(client.closed_by_peer());
}

TEST_F(Headers, P29_http_1_0_is_answered_and_closed) {
  Connection client(gateway_->address());
  client.send_raw("GET /charges/ch_1 HTTP/1.0\r\nHost: a\r\n\r\n");
  const auto bytes = client.read_until_close();
  EXPECT_TRUE(bytes.starts_with("HTTP/1.1 404")) << bytes;
}

}  // namespace
}  // namespace idem::test
