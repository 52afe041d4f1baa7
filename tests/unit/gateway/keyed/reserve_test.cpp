// Protocol §2 and §10: what the gateway asks the store for a request, and what a table of routes
// that changes does to it.
#include "gateway/keyed/reserve.hpp"
#include "gateway/keyed/keyed.hpp"
#include "store/stores.hpp"
#include "support/gzip.hpp"
#include "support/temp_dir.hpp"
#include "unit/http/request_parsing.hpp"

#include <idem/store_wait.hpp>

#include <gtest/gtest.h>

namespace idem::gateway {
namespace {

using http::test_requests::parse;
using http::test_requests::request;

Route route(std::string name, std::string_view pattern, std::vector<std::string> formerly = {}) {
  Route made;
  made.name = std::move(name);
  made.path = *PathPattern::parse(pattern);
  made.formerly = std::move(formerly);
  return made;
}

class GatewayReserve : public testing::Test {
 protected:
  GatewaySettings settings_with(std::vector<Route> routes) {
    GatewaySettings settings;
    settings.routes = RouteTable(std::move(routes), Route{});
    return settings;
  }

  /// Settings that the store has adopted; fails the test where it refuses them.
  GatewaySettings adopted(std::vector<Route> routes) {
    GatewaySettings settings = settings_with(std::move(routes));
    const auto reply = ask_and_wait(*store_, AdoptRoutes{names_of(settings.routes.all())});
    EXPECT_TRUE(reply && reply->why_not.empty()) << reply->why_not;
    settings.generation = reply->generation;
    return settings;
  }
  std::string refusal(std::vector<Route> routes) {
    const auto settings = settings_with(std::move(routes));
    return ask_and_wait(*store_, AdoptRoutes{names_of(settings.routes.all())})->why_not;
  }

  Reserve reserve(const GatewaySettings& settings, std::string_view path,
                  const std::vector<std::string>& fields = {}, std::string_view body = "x") {
    return reserve(settings, store_->identity(), path, fields, body);
  }
  Reserve reserve(const GatewaySettings& settings, const Identity& identity, std::string_view path,
                  const std::vector<std::string>& fields = {}, std::string_view body = "x") {
    const auto parsed = parse(request(fields, "POST " + std::string(path) + " HTTP/1.1"));
    const Route& found = settings.routes.find("POST", path.substr(0, path.find('?')));
    KeyedRequest keyed{"tenant", found.operation("POST", path.substr(0, path.find('?'))), "k",
                       http::ReceivedBody(*spill_), Observation(observer_)};
    EXPECT_TRUE(parsed.complete);
    keyed.body.append(body);
    return make_reserve(parsed.head, keyed.parts(), identity, settings, found).value();
  }

  ReserveOutcome ask(Reserve verb) {
    auto outcome = ask_and_wait(*store_, std::move(verb));
    EXPECT_TRUE(outcome);
    return outcome ? std::move(*outcome) : ReserveOutcome{Pending{}};
  }
  void run(const Reserve& verb) {
    const auto outcome = ask(verb);
    ASSERT_TRUE(std::holds_alternative<Execute>(outcome));
    const auto& won = std::get<Execute>(outcome);
    (void)ask_and_wait(*store_, Complete{won.id, won.attempt, {201, {}, "ran", true}, ""});
  }
  bool is_proven_misuse(const Reserve& verb) {
    const auto outcome = ask(verb);
    EXPECT_TRUE(std::holds_alternative<KeyMisuse>(outcome));
    const auto* const misuse = std::get_if<KeyMisuse>(&outcome);
    return misuse != nullptr && misuse->is_other;
  }
  bool replays(const Reserve& verb) { return std::holds_alternative<Replay>(ask(verb)); }
  bool is_misuse(const Reserve& verb) { return std::holds_alternative<KeyMisuse>(ask(verb)); }

  metrics::Registry registry_{metrics::TenantLabel::off, {}};
  Observing observing_{registry_, [](auto...) {}, false};
  Observer observer_{observing_};
  test::TempDir dir_;
  std::unique_ptr<http::SpillSpace> spill_ =
      std::move(http::SpillSpace::open(dir_.path().string()).value());
  std::unique_ptr<Store> store_ = std::move(open_memory({}).value());
};

TEST_F(GatewayReserve, S02_a_renamed_route_is_refused_or_replays_the_answers_of_its_old_name) {
  const auto before = adopted({route("pay", "/v1/payments"), route("quote", "/v1/quotes/{id}")});
  run(reserve(before, "/v1/payments?x=1"));
  EXPECT_NE(refusal({route("charge", "/v1/payments"), route("quote", "/v1/quotes/{id}")}), "");
  EXPECT_NE(refusal({}), "");

  const auto after = adopted({route("charge", "/v1/payments", {"pay"})});
  EXPECT_GT(after.generation, before.generation);
  EXPECT_TRUE(replays(reserve(after, "/v1/payments?x=1")));
  EXPECT_TRUE(is_misuse(reserve(after, "/v1/payments?x=1", {}, "y")));
  EXPECT_FALSE(ask_and_wait(*store_, reserve(before, "/v1/payments?x=1")))
      << "what began with the old routes must not run under a name that nobody looks up";
  EXPECT_EQ(reserve(after, "/v1/quotes/7").also.size(), 0U);
}

TEST_F(GatewayReserve, S22_records_of_shadow_are_apart_and_hide_no_name) {
  auto pay = route("pay", "/v1/payments");
  pay.enforce = Enforce::shadow;
  pay.reconcile = "bank";
  pay.lease_policy = LeasePolicy::rerun;
  auto shadow = adopted({pay});
  shadow.quota = Quota{.active_keys = 1};
  const Reserve seen = reserve(shadow, "/v1/payments");
  EXPECT_EQ(seen.operation, "shadow:pay");
  EXPECT_FALSE(seen.dispatched) << "its lease would end as unknown";
  EXPECT_EQ(seen.lease_policy, LeasePolicy::unknown);
  EXPECT_FALSE(seen.quota);
  EXPECT_EQ(seen.provider, "");
  run(seen);
  EXPECT_TRUE(replays(reserve(shadow, "/v1/payments")));

  const auto enforced = adopted({route("pay", "/v1/payments")});
  EXPECT_EQ(enforced.generation, shadow.generation) << "switching it on is no other naming";
  const Reserve begun = reserve(enforced, "/v1/payments");
  EXPECT_NE(begun.id, seen.id);
  for (const OtherName& one : begun.also) EXPECT_NE(one.id, seen.id);
  // No record of an enforced route keeps the name, so that it may go.
  const auto renamed = adopted({route("charge", "/v1/payments")});
  EXPECT_GT(renamed.generation, enforced.generation);
  EXPECT_NE(refusal({route("shadow:pay", "/v1/payments")}), "");
}

TEST_F(GatewayReserve, S22_a_key_unique_in_its_scope_has_a_record_of_shadow_of_its_own) {
  auto settings = settings_with({route("pay", "/pay")});
  settings.key_scope = KeyScope::tenant;
  auto shadow = settings;
  auto watched = route("pay", "/pay");
  watched.enforce = Enforce::shadow;
  shadow.routes = RouteTable({watched}, Route{});
  EXPECT_NE(reserve(settings, "/pay").id, reserve(shadow, "/pay").id);
}

TEST_F(GatewayReserve, S02_a_route_that_gets_a_name_replays_its_unnamed_answers) {
  const auto before = adopted({});
  EXPECT_EQ(before.generation, 1U) << "no routes are no change";
  run(reserve(before, "/v1/quotes/7?x=1"));
  EXPECT_NE(refusal({route("quote", "/v1/quotes/{id}")}), "");
  EXPECT_NE(refusal({route("quote", "/v1/quotes/{id}", {"PUT /v1/quotes/{id}"})}), "");
  const auto after = adopted({route("quote", "/v1/quotes/{id}", {"POST /v1/quotes/{id}"})});
  EXPECT_TRUE(replays(reserve(after, "/v1/quotes/7?x=1")));
  EXPECT_FALSE(replays(reserve(after, "/v1/quotes/8?x=1")));
}

TEST_F(GatewayReserve, T46_a_key_scope_of_tenant_leaves_the_operation_out_of_the_name) {
  auto settings = adopted({route("pay", "/v1/payments"), route("charge", "/v1/charges", {"pay"})});
  EXPECT_NE(reserve(settings, "/v1/payments").id, reserve(settings, "/v1/charges").id);
  settings.key_scope = KeyScope::tenant;
  const auto pay = reserve(settings, "/v1/payments");
  EXPECT_EQ(pay.id, reserve(settings, "/v1/charges").id);
  EXPECT_TRUE(reserve(settings, "/v1/charges").also.empty());
  EXPECT_EQ(pay.operation, "pay") << "people still see it";
  run(pay);
  EXPECT_TRUE(is_misuse(reserve(settings, "/v1/charges")));
  EXPECT_TRUE(replays(reserve(settings, "/v1/payments")));
}

TEST_F(GatewayReserve, T47_every_live_secret_is_looked_under_with_its_own_fingerprints) {
  const auto settings = adopted({route("pay", "/v1/payments", {"a", "b"})});
  run(reserve(settings, "/v1/payments"));
  Identity rotated = store_->identity();
  rotated.older = {secret_from("between"), rotated.secret};
  rotated.secret = secret_from("new");
  const auto retry = reserve(settings, rotated, "/v1/payments");
  EXPECT_EQ(retry.also.size(), 2U + 2U * 3U) << "three names under each of three secrets";
  EXPECT_TRUE(replays(retry));
  EXPECT_TRUE(is_misuse(reserve(settings, rotated, "/v1/payments", {}, "other")));
}

TEST_F(GatewayReserve, S10_a_routes_rule_chooses_the_members_that_count) {
  Route pay = route("pay", "/v1/payments");
  pay.fingerprint = {.exclude = {"/metadata/client_time"}, .headers = {"x-api-version"}};
  const auto settings = adopted({pay});
  const auto asked = [&](const std::string& version, std::string_view body) {
    std::vector<std::string> fields{"Content-Type: application/json"};
    if (!version.empty()) fields.push_back("X-API-Version: " + version);
    return reserve(settings, "/v1/payments", fields, body);
  };
  run(asked("1", R"({"amount":1,"metadata":{"client_time":1}})"));
  EXPECT_TRUE(replays(asked("1", R"({"metadata":{"client_time":2},"amount":1})")));
  EXPECT_TRUE(is_misuse(asked("1", R"({"metadata":{"client_time":1},"amount":2})")));
  EXPECT_TRUE(is_misuse(asked("2", R"({"metadata":{"client_time":1},"amount":1})")));
  EXPECT_TRUE(is_misuse(asked("", R"({"metadata":{"client_time":1},"amount":1})")));
}

// Misuse is reported as proven only where both were digested by one rule.
TEST_F(GatewayReserve,
       S10_a_rule_that_changes_loses_no_record_and_proves_nothing_about_older_ones) {
  const auto with_rule = [&](FingerprintRule rule) {
    Route pay = route("pay", "/v1/payments");
    pay.fingerprint = std::move(rule);
    return adopted({pay});
  };
  const auto asked = [&](const GatewaySettings& settings, std::string_view body) {
    return reserve(settings, "/v1/payments", {"Content-Type: application/json"}, body);
  };
  const auto proven = [&](const Reserve& verb) { return is_proven_misuse(verb); };
  const auto without = with_rule({});
  run(asked(without, R"({"a":1,"t":1})"));
  EXPECT_TRUE(proven(asked(without, R"({"a":1,"t":2})")));
  const auto ruled = with_rule({.exclude = {"/t"}});
  EXPECT_TRUE(replays(asked(ruled, R"({"t":1,"a":1})")));
  EXPECT_FALSE(proven(asked(ruled, R"({"a":1,"t":2})")));

  store_ = std::move(open_memory({}).value());
  const auto first = with_rule({.exclude = {"/t"}});
  run(asked(first, R"({"a":1,"t":1})"));
  EXPECT_TRUE(replays(asked(first, R"({"a":1,"t":2})")));
  EXPECT_TRUE(proven(asked(first, R"({"a":2,"t":1})")));
  EXPECT_FALSE(proven(asked(with_rule({.exclude = {"/u"}}), R"({"a":1,"t":1})")));
  EXPECT_FALSE(proven(asked(with_rule({}), R"({"a":1,"t":1})")));
}

TEST_F(GatewayReserve, S13_an_outcome_names_the_record_that_was_found) {
  const auto settings = adopted({route("pay", "/v1/payments")});
  const auto stored = reserve(settings, "/v1/payments");
  const auto won = std::get<Execute>(ask(stored));
  Identity rotated = store_->identity();
  rotated.older = {rotated.secret};
  rotated.secret = secret_from("new");
  const auto retry = [&](std::string_view body = "x") {
    return ask(reserve(settings, rotated, "/v1/payments", {}, body));
  };
  ASSERT_NE(reserve(settings, rotated, "/v1/payments").id, stored.id);
  EXPECT_EQ(std::get<InProgress>(retry()).id, stored.id);
  EXPECT_EQ(std::get<KeyMisuse>(retry("y")).id, stored.id);
  (void)ask_and_wait(*store_, MarkUnknown{won.id, won.attempt, "test", {}, {}});
  EXPECT_EQ(std::get<Unknown>(retry()).id, stored.id);
  (void)ask_and_wait(*store_, Complete{won.id, won.attempt, {201, {}, "ran", true}, ""});
  EXPECT_EQ(std::get<Replay>(retry()).id, stored.id);
}

/// Requests with a gzipped body on a route that decodes, or one that does not.
class GatewayDecodes : public GatewayReserve {
 protected:
  GatewaySettings settings_of(std::vector<Coding> decode, std::size_t most = 1000) {
    Route pay = route("pay", "/v1/payments");
    pay.decode = std::move(decode);
    pay.request_body_bytes_max = most;
    return adopted({pay});
  }
  Reserve sent(const GatewaySettings& settings, std::string_view body,
               std::vector<std::string> codings = {"gzip"}) {
    std::vector<std::string> fields{"Content-Type: application/json"};
    for (const auto& coding : codings) fields.push_back("Content-Encoding: " + coding);
    return reserve(settings, "/v1/payments", fields, body);
  }
  static std::string gzip(std::string_view content, std::uint32_t moment = 0) {
    return test::gzipped(content, moment);
  }
};

TEST_F(GatewayDecodes, S10_the_same_content_compressed_again_is_the_same_request) {
  const auto settings = settings_of({Coding::gzip});
  run(sent(settings, gzip(R"({"a":1,"b":2})", 1)));
  EXPECT_TRUE(replays(sent(settings, gzip(R"({"a":1,"b":2})", 2))));
  EXPECT_TRUE(replays(sent(settings, gzip(R"({"b":2, "a":1.0})", 3), {"X-GZip"})));
  EXPECT_TRUE(replays(sent(settings, gzip(R"({"a":1,"b":2})", 4), {"identity", "gzip"})));
  EXPECT_TRUE(replays(sent(settings, R"({"a":1,"b":2})", {}))) << "it says the same";
  EXPECT_TRUE(is_proven_misuse(sent(settings, gzip(R"({"a":1,"b":3})", 1))));
}

TEST_F(GatewayDecodes, S10_the_bytes_count_where_decoders_may_disagree_and_prove_nothing) {
  const std::string json = R"({"a":1})";
  const std::vector<std::pair<std::string, std::vector<std::string>>> raw{
      {gzip(json) + "x", {"gzip"}},
      {gzip(json) + gzip(json), {"gzip"}},
      {gzip(json).substr(0, 20), {"gzip"}},
      {gzip(std::string(1001, ' ') + json), {"gzip"}},
      {gzip(gzip(json)), {"gzip", "gzip"}},
      {gzip(json), {"gzip, br"}},
      {gzip(json), {"deflate"}},
      {json, {"gzip"}}};
  for (const auto& [body, codings] : raw) {
    store_ = std::move(open_memory({}).value());
    const auto settings = settings_of({Coding::gzip});
    run(sent(settings, body, codings));
    EXPECT_TRUE(replays(sent(settings, body, codings)));
    EXPECT_FALSE(is_proven_misuse(sent(settings, gzip(R"({"a":2})")))) << "a body that is read";
    store_ = std::move(open_memory({}).value());
    const auto again = settings_of({Coding::gzip});
    run(sent(again, gzip(R"({"a":2})")));
    EXPECT_FALSE(is_proven_misuse(sent(again, body, codings))) << "of the retry";
  }
}

TEST_F(GatewayDecodes, S10_a_record_is_found_after_the_setting_comes_or_goes) {
  const auto without = settings_of({});
  run(sent(without, gzip(R"({"a":1})", 1)));
  const auto with = settings_of({Coding::gzip});
  EXPECT_TRUE(replays(sent(with, gzip(R"({"a":1})", 1))));
  EXPECT_FALSE(is_proven_misuse(sent(with, gzip(R"({"a":1})", 2))));

  store_ = std::move(open_memory({}).value());
  const auto first = settings_of({Coding::gzip});
  run(sent(first, gzip(R"({"a":1})", 1)));
  EXPECT_FALSE(is_proven_misuse(sent(settings_of({Coding::br}), gzip(R"({"a":1})", 1))));
}

TEST_F(GatewayDecodes, S10_a_loop_decodes_no_more_than_its_bound) {
  const auto settings = settings_of({Coding::gzip}, 1UL << 20);
  const auto is_made_within = [&](std::size_t bytes_max, const std::string& body,
                                  const GatewaySettings& by) {
    const auto parsed = parse(request({"Content-Encoding: gzip"}, "POST /v1/payments HTTP/1.1"));
    const RequestParts parts{"tenant", "pay", "k", body};
    return make_reserve_within(bytes_max, parsed.head, parts, store_->identity(), by,
                               by.routes.find("POST", "/v1/payments"))
        .has_value();
  };
  const std::string body = gzip(std::string(5000, ' ') + "{}");
  ASSERT_LT(body.size(), 100U);
  EXPECT_TRUE(is_made_within(5002, body, settings));
  EXPECT_FALSE(is_made_within(5001, body, settings)) << "another thread decodes it";
  EXPECT_TRUE(is_made_within(5001, body, settings_of({}))) << "nobody decodes it";
  EXPECT_TRUE(is_made_within(5001, body, settings_of({Coding::gzip}, 4000))) << "its bytes count";
  EXPECT_FALSE(is_made_within(body.size() - 1, body, settings_of({})));
}

TEST_F(GatewayReserve, S10_the_id_of_a_json_rpc_call_does_not_count_where_the_route_says_so) {
  const auto settings_of = [&](bool jsonrpc, FingerprintRule rule = {}) {
    Route pay = route("pay", "/rpc");
    pay.jsonrpc = jsonrpc;
    pay.decode = {Coding::gzip};
    pay.fingerprint = std::move(rule);
    return adopted({pay});
  };
  const auto sent = [&](const GatewaySettings& settings, std::string_view body,
                        bool encoded = false) {
    std::vector<std::string> fields{"Content-Type: application/json"};
    if (encoded) fields.push_back("Content-Encoding: gzip");
    return reserve(settings, "/rpc", fields, encoded ? test::gzipped(body) : std::string(body));
  };
  const auto settings = settings_of(true);
  run(sent(settings, R"({"jsonrpc":"2.0","method":"pay","id":1})"));
  EXPECT_TRUE(replays(sent(settings, R"({"id":"b","jsonrpc":"2.0","method":"pay"})")));
  EXPECT_TRUE(is_proven_misuse(sent(settings, R"({"jsonrpc":"2.0","method":"refund","id":1})")));
  for (const char* const other :
       {R"([{"jsonrpc":"2.0","method":"pay","id":2}])", R"({"jsonrpc":"2.0","method":"pay"})",
        R"({"method":"pay","id":1})", R"({"jsonrpc":"1.0","method":"pay","id":1})"}) {
    EXPECT_TRUE(is_misuse(sent(settings, other))) << other;
  }
  EXPECT_TRUE(is_misuse(sent(settings, R"({"jsonrpc":"2.0","method":"pay","id":2})", true)))
      << "an encoded call is not read where it is sent";

  const auto run_and_ask = [&](const GatewaySettings& by, std::string_view one,
                               std::string_view other) {
    run(sent(by, one));
    return ask(sent(by, other));
  };
  store_ = std::move(open_memory({}).value());
  EXPECT_TRUE(std::holds_alternative<KeyMisuse>(run_and_ask(
      settings_of(true), R"([{"jsonrpc":"2.0","id":1}])", R"([{"jsonrpc":"2.0","id":2}])")));
  store_ = std::move(open_memory({}).value());
  EXPECT_TRUE(std::holds_alternative<KeyMisuse>(run_and_ask(
      settings_of(false), R"({"jsonrpc":"2.0","id":1})", R"({"jsonrpc":"2.0","id":2})")));
  store_ = std::move(open_memory({}).value());
  EXPECT_TRUE(std::holds_alternative<Replay>(run_and_ask(
      settings_of(true, {.include = {"/params"}}), R"({"jsonrpc":"2.0","id":1,"params":[1]})",
      R"({"jsonrpc":"2.0","id":2,"params":[1]})")));

  // The setting comes, and a retry has the id of the record's call.
  store_ = std::move(open_memory({}).value());
  run(sent(settings_of(false), R"({"jsonrpc":"2.0","id":1})"));
  EXPECT_TRUE(replays(sent(settings_of(true), R"({"jsonrpc":"2.0","id":1})")));
}

}  // namespace
}  // namespace idem::gateway
