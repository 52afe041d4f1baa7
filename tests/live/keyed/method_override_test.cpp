#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

#include "support/async.hpp"
#include "support/scripted_live.hpp"

/// Fields and parameters by which many frameworks run another method than the request line's.
namespace idem::test {
namespace {

Request with_no_key(std::string_view method, std::string_view target = "/charges") {
  auto request = without(charge(""), "Idempotency-Key");
  request.method = method;
  request.target = target;
  if (method == "GET" || method == "HEAD") request.body.clear();
  return request;
}

Request form(std::string_view key, std::string body) {
  auto request = with(without(charge(key), "Content-Type"), "Content-Type",
                      "application/x-www-form-urlencoded");
  request.body = std::move(body);
  return request;
}

using MethodOverrides = Live;

TEST_F(MethodOverrides, S08_are_refused) {
  for (const auto* name : {"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method",
                           "x-http-method", "X_HTTP_Method_Override", "XHttpMethodOverride"}) {
    for (const auto* value : {"DELETE", "delete", "POST", "", "no method"}) {
      for (const auto& request :
           {charge("k"), with_no_key("GET", "/echo"), with_no_key("PUT", "/echo")}) {
        EXPECT_TRUE(is_problem(ask(with(request, name, value)), 400, "bad_request")) << name;
      }
    }
  }
  for (const auto* query :
       {"_method=DELETE", "a=1&_method=put", "a;%5fmETHOD=DELETE", ".method=PUT", "+_method=PUT",
        "x-http-method-override=PUT", "_method="}) {
    const auto target = "/echo?" + std::string(query);
    EXPECT_TRUE(is_problem(ask(with_no_key("GET", target)), 400, "bad_request")) << query;
    auto keyed = charge("k");
    keyed.target = target;
    EXPECT_TRUE(is_problem(ask(keyed), 400, "bad_request")) << query;
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_EQ(
      ask(with(with_no_key("GET", "/echo?method=a&x_method=b&_methods=c"), "X-HTTP", "x")).status,
      200);
}

TEST_F(MethodOverrides, S08_of_bodies_that_are_read_whole_are_refused) {
  const std::string part =
      "--b\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--b--\r\n";
  auto multipart =
      with(without(charge("k"), "Content-Type"), "Content-Type", "multipart/form-data; boundary=b");
  multipart.body = part;
  auto untyped = without(form("k", "amount=1&_method=DELETE"), "Content-Type");
  auto large = form("k", "a=" + std::string(600'000, 'x') + "&_method=DELETE");
  for (const auto& request : {form("k", "amount=1&_method=DELETE"), multipart, untyped, large,
                              charge("k", "", R"({"amount":1,"\u005fmethod":"DELETE"})")}) {
    EXPECT_TRUE(is_problem(ask(request), 400, "bad_request")) << request.body.substr(0, 100);
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_EQ(ask(form("k", "method=card&amount=1")).status, 201);
}

/// A gateway with routes.
class MethodOverridesOf : public Live {
 protected:
  std::vector<std::string> flags() const override {
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << "routes:\n"
                           "  - {match: {methods: [PATCH], path: /strict}}\n"
                           "  - {match: {path: /strict}, allow_method_override: true}\n"
                           "  - {match: {path: \"/{rest...}\"}, allow_method_override: true,\n"
                           "     fingerprint: {include: [/amount]}}\n";
    return {"--config", file, "--threads", "1"};
  }
  static Request asking(const Request& request, std::string_view method) {
    return with(request, "X-HTTP-Method-Override", method);
  }
};

TEST_F(MethodOverridesOf, S10_an_allowed_one_counts_in_the_fingerprint_and_in_memory) {
  const auto patch = ask(asking(charge("k"), "PATCH"));
  ASSERT_EQ(patch.status, 201) << patch.raw;
  // The first replay is the store's, the next ones come from memory.
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(replays(patch, ask(asking(charge("k"), "PATCH"))));
    EXPECT_TRUE(is_problem(ask(asking(charge("k"), "DELETE")), 422, "key_reused"));
    EXPECT_TRUE(is_problem(ask(asking(charge("k"), "patch")), 422, "key_reused"));
    EXPECT_TRUE(is_problem(ask(charge("k")), 422, "key_reused"));
    EXPECT_TRUE(
        is_problem(ask(with(charge("k"), "X-Method-Override", "PATCH")), 422, "key_reused"));
    EXPECT_TRUE(
        is_problem(ask(with(charge("k"), "X_HTTP_Method_Override", "PATCH")), 422, "key_reused"));
  }
  const auto plain = ask(charge("plain"));
  EXPECT_EQ(plain.status, 201);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(replays(plain, ask(charge("plain"))));
  EXPECT_TRUE(is_problem(ask(asking(charge("plain"), "DELETE")), 422, "key_reused"));
  EXPECT_EQ(provider_->ledger().arrivals, 2);
}

TEST_F(MethodOverridesOf, S10_one_in_a_body_counts_whatever_the_rule_leaves_out) {
  const auto json = [](std::string_view key, std::string_view more) {
    return charge(key, "", R"({"amount":1)" + std::string(more) + "}");
  };
  const auto patch = ask(json("k", R"(,"_method":"PATCH")"));
  ASSERT_EQ(patch.status, 201) << patch.raw;
  EXPECT_TRUE(replays(patch, ask(json("k", R"(,"_method":"PATCH","time":1)"))));
  EXPECT_TRUE(is_problem(ask(json("k", R"(,"_method":"DELETE")")), 422, "key_reused"));
  EXPECT_TRUE(is_problem(ask(json("k", "")), 422, "key_reused"));
  EXPECT_TRUE(is_problem(ask(json("n", R"(,"_method":["PATCH"])")), 400, "bad_request"));
  EXPECT_EQ(ask(form("f", "_method=patch&amount=1")).status, 201);
  EXPECT_TRUE(is_problem(ask(form("f", "_method=delete&amount=1")), 422, "key_reused"));
  EXPECT_EQ(provider_->ledger().arrivals, 2);
}

TEST_F(MethodOverridesOf, S08_a_key_is_needed_if_either_method_needs_one) {
  for (const auto& get :
       {asking(with_no_key("GET", "/echo"), "POST"), asking(with_no_key("GET", "/echo"), "patch"),
        with_no_key("GET", "/echo?_method=POST"), asking(with_no_key("PUT"), "POST"),
        asking(with_no_key("POST"), "GET")}) {
    EXPECT_TRUE(is_problem(ask(get), 400, "key_missing")) << get.method << get.target;
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  const auto get = with(asking(with_no_key("GET", "/echo"), "POST"), "Idempotency-Key", "k");
  const auto first = ask(get);
  EXPECT_EQ(first.status, 200) << first.raw;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(replays(first, ask(get)));
  EXPECT_EQ(ask(asking(with_no_key("GET", "/echo"), "HEAD")).status, 200);
  EXPECT_EQ(ask(asking(with_no_key("PUT", "/echo"), "DELETE")).status, 201);
}

TEST_F(MethodOverridesOf, S08_two_that_differ_and_the_others_route_are_refused) {
  const auto differ = with(asking(charge("k"), "PATCH"), "X-HTTP-Method", "DELETE");
  EXPECT_TRUE(is_problem(ask(differ), 400, "bad_request"));
  EXPECT_TRUE(is_problem(ask(asking(asking(charge("k"), "PATCH"), "DELETE")), 400, "bad_request"));
  auto strict = charge("k");
  strict.target = "/strict";
  EXPECT_TRUE(is_problem(ask(asking(strict, "patch")), 400, "bad_request"));
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_EQ(ask(with(asking(charge("k"), "PATCH"), "X-HTTP-Method", "PATCH")).status, 201);
}

class MethodOverridesOnTheWire : public Scripted {};

// P24: a GET is sent again where the upstream has closed the connection; one that may run as
// another method is not.
TEST_F(MethodOverridesOnTheWire, P24_a_get_that_asks_for_another_method_is_sent_once) {
  std::atomic<int> requests = 0;
  start(
      [&](UpstreamConnection& connection) {
        for (int i = 0; i < 2 && connection.read_request(); ++i) {
          ++requests;
          if (i == 0) connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
      },
      {"--allow-method-override"});
  const Request get{.method = "GET", .target = "/", .fields = {}};
  EXPECT_EQ(ask(get).status, 200);
  EXPECT_EQ(ask(with(get, "X-HTTP-Method-Override", "PUT")).status, 502);
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(ask(get).status, 200);
  EXPECT_EQ(ask(get).status, 200) << "the second of its connection, and once more";
  EXPECT_EQ(requests, 5);
}

TEST_F(MethodOverridesOnTheWire, S10_a_stored_request_keeps_what_it_asks_for) {
  start(&ScriptedUpstream::answer_all, {"--mode", "async", "--allow-method-override"});
  const auto patch = with(charge("k"), "X-HTTP-Method-Override", "PATCH");
  const auto accepted = ask(patch);
  ASSERT_EQ(accepted.status, 202) << accepted.raw;
  EXPECT_EQ(state_when_ended(gateway_->address(), accepted)["state"].string, "completed");
  ASSERT_EQ(upstream_->requests(), 1);
  EXPECT_NE(upstream_->received().at(0).find("X-HTTP-Method-Override: PATCH\r\n"),
            std::string::npos);
  const auto other = with(charge("k"), "X-HTTP-Method-Override", "DELETE");
  EXPECT_TRUE(is_problem(ask(other), 422, "key_reused"));
  EXPECT_EQ(ask(patch).get("Idempotent-Replayed"), "true");
}

/// Fields that say what is to be done, and to what.
TEST_F(MethodOverrides, S10_fields_that_change_the_meaning_count) {
  for (const auto* name : {"Stripe-Account", "Stripe-Context", "SOAPAction", "X-Amz-Target",
                           "Content-Language", "Content-Range", "Destination", "Overwrite",
                           "X-Original-URL", "X-Rewrite-URL", "Stripe_Account"}) {
    const auto request = with(charge(name), name, "a");
    const auto first = ask(request);
    ASSERT_EQ(first.status, 201) << first.raw;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(replays(first, ask(request))) << name;
    EXPECT_TRUE(is_problem(ask(with(charge(name), name, "b")), 422, "key_reused")) << name;
    EXPECT_TRUE(is_problem(ask(charge(name)), 422, "key_reused")) << name;
    EXPECT_EQ(effects(name), 1);
  }
  const auto first = ask(charge("other"));
  for (const auto* name : {"If-Match", "Prefer", "Accept-Language", "Stripe-Version", "Date"}) {
    EXPECT_TRUE(replays(first, ask(with(charge("other"), name, "b")))) << name;
  }
}

}  // namespace
}  // namespace idem::test
