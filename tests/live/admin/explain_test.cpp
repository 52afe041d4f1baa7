#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "support/async.hpp"
#include "support/certificates.hpp"
#include "support/explained.hpp"
#include "support/moved_clock.hpp"
#include "support/token_maker.hpp"

/// What explain says about a request, and what the request then gets.
namespace idem::test {
namespace {

bool has(const Json& list, std::string_view text) {
  return std::ranges::any_of(list.items, [&](const Json& one) { return one.string == text; });
}

class ExplainLive : public Explained {
 protected:
  void start_with(std::vector<std::string> flags, std::vector<std::string> scope = {}) {
    EXPECT_EQ(gateway_->terminate(), 0);
    auto options = this->options(provider_->address());
    options.flags = std::move(flags);
    if (!scope.empty()) options.scope = std::move(scope);
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  std::string file(const std::string& name, const std::string& text) {
    const auto path = dir_.path() / name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    return path.string();
  }
};

TEST_F(ExplainLive, V29_V02_foretells_what_each_request_gets) {
  const Json fresh = foretold(charge("k"), "execute");
  EXPECT_EQ(fresh["record"].kind, Json::Kind::null);
  EXPECT_EQ(fresh["route"].string, "/{rest...}");
  EXPECT_EQ(fresh["scope"].string, "acme");
  EXPECT_EQ(fresh["operation"].string, "POST /charges");
  EXPECT_EQ(fresh["key"]["field"].string, "Idempotency-Key");
  EXPECT_EQ(fresh["key"]["syntax"].string, "bare");
  EXPECT_EQ(fresh["key"]["bytes"].integer, 1);
  EXPECT_EQ(fresh["operation_ref"].string, only("completed")["ref"].string);

  const Json replay = foretold(charge("k"), "replay");
  EXPECT_EQ(replay["answer"]["status"].integer, 201);
  EXPECT_EQ(replay["record"]["state"].string, "completed");
  EXPECT_TRUE(replay["fingerprint"]["matches"].boolean);
  EXPECT_FALSE(replay["record"].has("response"));

  const Json misuse = foretold(charge("k", "", R"({"amount":1})"), "misuse");
  EXPECT_FALSE(misuse["fingerprint"]["matches"].boolean);
  EXPECT_EQ(misuse["answer"]["status"].integer, 422);

  EXPECT_EQ(ask(charge("lost", "drop-after")).status, 502);
  const Json unknown = foretold(charge("lost", "drop-after"), "unknown");
  EXPECT_EQ(unknown["record"]["state"].string, "unknown");

  EXPECT_EQ(ask(charge("free", "refuse=429")).status, 429);
  const Json again = foretold(charge("free"), "execute");
  EXPECT_EQ(again["record"]["state"].string, "failed_retryable");

  Connection first(gateway_->address());
  first.send(charge("held", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  foretold(charge("held", "hold=h"), "in_progress");
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);
}

TEST_F(ExplainLive, S08_S06_foretells_refusals_and_what_passes) {
  start_with({"--key-reject-pii", "--key-time", "checked"});
  const auto unkeyed = without(charge("k"), "Idempotency-Key");
  const Json missing = foretold(unkeyed, "refused");
  EXPECT_EQ(missing["answer"]["code"].string, "key_missing");
  EXPECT_EQ(missing["operation_ref"].kind, Json::Kind::null);
  EXPECT_EQ(missing["key"].kind, Json::Kind::null);
  foretold(charge("two words"), "refused");
  foretold(with(charge("k"), "Idempotency-Key", "l"), "refused");
  const Json personal = foretold(charge("ada@example.org"), "refused");
  EXPECT_EQ(personal["answer"]["code"].string, "key_invalid");
  EXPECT_EQ(personal["operation_ref"].string.size(), 32U);
  EXPECT_EQ(personal["why"].string.find("ada"), std::string::npos);
  const Json old = foretold(charge("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), "refused");
  EXPECT_EQ(old["answer"]["code"].string, "key_expired");
  const Json nobody = foretold(without(charge("k"), "X-Tenant-Id"), "refused");
  EXPECT_EQ(nobody["answer"]["status"].integer, 401);
  foretold(with(charge("k"), "Content_Type", "text/plain"), "refused");
  foretold(with(charge("k"), "Connection", "X-Tenant-Id"), "refused");
  foretold(with(charge("k"), "X-HTTP-Method-Override", "PUT"), "refused");
  foretold(charge("k", "", R"({"_method":"PUT"})"), "refused");
  foretold(with(with(charge("k"), "Connection", "upgrade"), "Upgrade", "websocket"), "refused");

  Request get{.method = "GET", .target = "/echo", .fields = {{"X-Tenant-Id", "acme"}}};
  EXPECT_EQ(foretold(get, "pass")["answer"]["status"].kind, Json::Kind::null);
  foretold(with(get, "Idempotency-Key", "k"), "pass");
  auto put = unkeyed;
  put.method = "PUT";
  put.target = "/echo";
  foretold(put, "pass");
  EXPECT_EQ(explain({.method = "GET", .target = "/.well-known/idempotency"})["outcome"].string,
            "pass");
}

TEST_F(ExplainLive, S08_a_key_that_new_rules_forbid_is_answered_from_its_record) {
  ASSERT_EQ(ask(charge("ada@example.org")).status, 201);
  start_with({"--key-reject-pii"});
  foretold(charge("ada@example.org"), "replay");
  foretold(charge("bob@example.org"), "refused");
}

TEST_F(ExplainLive, P11_P26_what_no_client_may_send_is_refused_as_on_the_wire) {
  const auto code = [&](Request request) {
    const Json said = explain(request);
    EXPECT_EQ(said["outcome"].string, "refused");
    return said["answer"]["code"].string;
  };
  auto request = charge("k");
  request.method = "P OST";
  EXPECT_EQ(code(request), "bad_request");
  request = charge("k");
  request.target = "no-slash";
  EXPECT_EQ(code(request), "bad_request");
  request.target = "/a b";
  EXPECT_EQ(code(request), "bad_request");
  request.target = "/" + std::string(9'000, 'a');
  EXPECT_EQ(code(request), "uri_too_long");
  EXPECT_EQ(code(with(charge("k"), "bad name", "v")), "bad_request");
  EXPECT_EQ(code(with(charge("k"), "Transfer_Encoding", "chunked")), "bad_request");
  EXPECT_EQ(code(with(charge("k"), "Expect", "much")), "expectation_failed");
}

TEST_F(ExplainLive, questions_that_cannot_be_understood_are_refused_with_their_place) {
  const auto refused = [&](std::string body) {
    const auto answer = post("/v1/explain", std::move(body));
    EXPECT_EQ(answer.status, 400) << answer.raw;
    return json_text(answer.body, "detail");
  };
  EXPECT_TRUE(refused("{}").starts_with("/method:"));
  EXPECT_TRUE(refused(R"({"method":"POST"})").starts_with("/target:"));
  const std::string begun = R"({"method":"POST","target":"/x",)";
  EXPECT_TRUE(refused(begun + R"("headers":[["A"]]})").starts_with("/headers/0:"));
  EXPECT_TRUE(
      refused(begun + R"("headers":[["A","1"],["B","2\r\nC: 3"]]})").starts_with("/headers/1:"));
  EXPECT_TRUE(refused(begun + R"("headers":[["A:B","1"]]})").starts_with("/headers/0:"));
  EXPECT_TRUE(refused(begun + R"("headers":[["Content-Length","7"]]})").starts_with("/headers/0:"));
  EXPECT_TRUE(refused(begun + R"("body_b64":"!"})").starts_with("/body_b64:"));
  EXPECT_TRUE(refused(begun + R"("scope":""})").starts_with("/scope:"));
  EXPECT_TRUE(refused(begun + R"("bodies":1})").starts_with("body:"));
  EXPECT_EQ(get("/v1/explain").status, 405);
  EXPECT_EQ(post("/v1/explain?x=1", "{}").status, 400);
  auto plain = order("/v1/explain", "{}");
  plain = with(without(plain, "Content-Type"), "Content-Type", "text/plain");
  EXPECT_EQ(send_once(gateway_->admin(), plain).status, 415);
}

TEST_F(ExplainLive, S10_says_what_counts_and_which_part_of_a_misuse_differs) {
  const auto path = file("routes.yaml",
                         "routes:\n  - {name: create-charge, match: {path: /charges},\n"
                         "     fingerprint: {exclude: [/sent_at], headers: [X-Region]}}\n");
  start_with({"--config", path});
  auto request = with(charge("k", "", R"({"amount":1,"sent_at":"now"})"), "X-Region", "eu");
  const Json fresh = foretold(with(request, "User-Agent", "curl"), "execute");
  EXPECT_EQ(fresh["route"].string, "create-charge");
  EXPECT_EQ(fresh["operation"].string, "create-charge");
  const Json& facts = fresh["fingerprint"];
  EXPECT_EQ(facts["form"].string, "json selection");
  EXPECT_EQ(facts["matches"].kind, Json::Kind::null);
  for (const auto* part : {"method", "path and query", "media type", "header X-Region", "body"}) {
    EXPECT_TRUE(has(facts["counted"], part)) << part;
  }
  for (const auto* part : {"header User-Agent", "body /sent_at"}) {
    EXPECT_TRUE(has(facts["left_out"], part)) << part;
  }
  foretold(with(charge("k", "", R"({"sent_at":"later","amount":1.0})"), "X-Region", "eu"),
           "replay");
  const auto differs = [&](const Request& other) {
    const Json said = foretold(other, "misuse");
    const auto& all = said["differences"].items;
    EXPECT_LE(all.size(), 1U);
    return all.empty() ? std::string() : all[0]["part"].string;
  };
  auto query = request;
  query.target += "?dry=1";
  EXPECT_EQ(differs(query), "query");
  EXPECT_EQ(differs(with(without(request, "Content-Type"), "Content-Type", "text/json")),
            "media type");
  request.body = R"({"amount":1,"sent_at":"now","memo":"private"})";
  EXPECT_EQ(differs(request), "body /memo");
  request.body = R"({"amount":2})";
  const Json other = explain(request);
  EXPECT_TRUE(other["differences"].items.empty());
  EXPECT_NE(other["why"].string.find("is not known"), std::string::npos);
}

TEST_F(ExplainLive, S03_S07_stored_requests_are_foretold_and_compared_without_their_values) {
  start_with({"--mode", "async"});
  const Json fresh = foretold(charge("k", "hold=h"), "execute");
  EXPECT_EQ(fresh["answer"]["status"].integer, 202);
  ASSERT_TRUE(provider_->wait_held("h", 1));
  foretold(charge("k", "hold=h"), "in_progress");
  auto other = charge("k", "hold=h", R"({"amount":"private-12","currency":"USD","to":[1]})");
  const Json misuse = foretold(other, "misuse");
  const auto& all = misuse["differences"].items;
  ASSERT_EQ(all.size(), 3U) << misuse["why"].string;
  const auto expect = [&](std::size_t at, const char* part, const char* stored, const char* sent) {
    EXPECT_EQ(all[at]["part"].string, part);
    EXPECT_EQ(all[at]["stored"].string, stored);
    EXPECT_EQ(all[at]["sent"].string, sent);
  };
  expect(0, "body /amount", "number", "string, 10 characters");
  expect(1, "body /currency", "string, 3 characters", "string, 3 characters");
  expect(2, "body /to", "absent", "array, 1 item");
  const auto raw = post("/v1/explain", question(other)).body;
  EXPECT_EQ(raw.find("EUR"), std::string::npos);
  EXPECT_EQ(raw.find("private-12"), std::string::npos);
  provider_->release("h");
  const auto accepted = ask(charge("k", "hold=h"));
  if (accepted.status == 202) {
    EXPECT_EQ(state_when_ended(gateway_->address(), accepted)["state"].string, "completed");
  }
  foretold(charge("k", "hold=h"), "replay");
}

TEST_F(ExplainLive, V34_changes_and_counts_nothing) {
  start_with({"--quota-active-keys", "2", "--quota-new-keys-at-once", "2",
              "--quota-new-keys-per-second", "1"});
  ASSERT_EQ(ask(charge("k")).status, 201);
  const auto ref = only("completed")["ref"].string;
  const auto counted = [&] {
    std::string lines;
    const auto text = get("/metrics").body;
    for (const auto* name : {"idem_reserve_total", "idem_answers_total", "idem_duplicates_total",
                             "idem_upstream_requests_total", "idem_release_total",
                             "idem_keys_like_personal_data_total"}) {
      for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
        lines += text.substr(at, text.find('\n', at) - at) + "\n";
      }
    }
    return lines;
  };
  const auto records = [&] {
    return get("/v1/keys/" + ref).body + std::to_string(read("/v1/keys")["keys"].items.size());
  };
  ASSERT_EQ(metric_from("idem_answers_total{route=\"/{rest...}\",status=\"201\"}", 1), 1);
  const auto before = std::pair(counted(), records());
  const int arrived = provider_->ledger().arrivals;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(explain(charge(fmt::format("new-{}", i)))["outcome"].string, "execute");
    EXPECT_EQ(explain(charge("k"))["outcome"].string, "replay");
    EXPECT_EQ(explain(charge("k", "", "{}"))["outcome"].string, "misuse");
  }
  EXPECT_EQ(std::pair(counted(), records()), before);
  EXPECT_EQ(provider_->ledger().arrivals, arrived);
  EXPECT_EQ(ask(charge("new-0")).status, 201) << "the quota has its room still";
  EXPECT_TRUE(is_problem(ask(charge("new-1")), 429, "quota_exceeded"));
}

TEST_F(ExplainLive, S02_finds_records_under_older_secrets_and_former_names) {
  const auto old_secret = file("old", std::string(40, 'o'));
  const auto fresh = file("fresh", std::string(40, 'f'));
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "other.db";
  const auto on = [&](std::vector<std::string> flags) {
    EXPECT_EQ(gateway_->terminate(), 0);
    options.flags = std::move(flags);
    gateway_ = std::make_unique<Gateway>(options);
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  };
  on({"--secret-file", old_secret});
  ASSERT_EQ(ask(charge("k")).status, 201);
  const auto ref = only("completed")["ref"].string;
  const auto path = file("routes.yaml",
                         "routes:\n  - {name: charge, formerly: [\"POST /charges\"],\n"
                         "     match: {path: /charges, methods: [POST]}}\n");
  on({"--secret-file", fresh, "--secret-file", old_secret, "--config", path});
  const Json said = foretold(charge("k"), "replay");
  EXPECT_EQ(said["operation_ref"].string, ref);
  EXPECT_EQ(said["operation"].string, "charge");
  EXPECT_EQ(said["record"]["operation"].string, "POST /charges");
}

TEST_F(ExplainLive, T46_with_a_key_for_each_tenant_the_other_operation_is_named) {
  gateway_->terminate();
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "tenant.db";
  options.flags = {"--key-scope", "tenant"};
  gateway_ = std::make_unique<Gateway>(options);
  ASSERT_EQ(ask(charge("k")).status, 201);
  auto other = charge("k");
  other.target = "/echo";
  const Json said = foretold(other, "misuse");
  ASSERT_EQ(said["differences"].items.size(), 1U);
  EXPECT_EQ(said["differences"].items[0]["part"].string, "operation");
  EXPECT_EQ(said["differences"].items[0]["stored"].string, "POST /charges");
  EXPECT_EQ(said["differences"].items[0]["sent"].string, "POST /echo");
}

TEST_F(ExplainLive, S12_answers_are_those_of_the_routes_preset) {
  start_with({"--preset", "stripe"});
  ASSERT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(foretold(charge("k", "", "{}"), "misuse")["answer"]["status"].integer, 400);
}

TEST_F(ExplainLive, S07_a_duplicate_that_waits_is_said_to_wait) {
  start_with({"--mode", "wait"});
  Connection first(gateway_->address());
  first.send(charge("held", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const Json said = foretold(with(charge("held", "hold=h"), "Prefer", "wait=0"), "in_progress");
  EXPECT_EQ(said["answer"]["status"].integer, 409);
  const Json waits = explain(charge("held", "hold=h"));
  EXPECT_NE(waits["why"].string.find("waits"), std::string::npos) << waits["why"].string;
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);
}

TEST_F(ExplainLive, S09_a_scope_may_be_named_and_a_token_is_verified) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  const auto nameless = without(charge("k"), "X-Tenant-Id");
  EXPECT_EQ(explain(nameless)["outcome"].string, "refused");
  EXPECT_EQ(explain(nameless, R"(,"scope":"acme")")["outcome"].string, "replay");
  EXPECT_EQ(explain(nameless, R"(,"scope":"other")")["outcome"].string, "execute");

  TokenMaker key("ES256");
  gateway_->terminate();
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "jwt.db";
  options.scope = {"--scope",         "jwt:tenant",
                   "--jwt-jwks-file", file("jwks", R"({"keys":[)" + key.jwk(R"("kid":"a")") + "]}"),
                   "--jwt-algorithm", "ES256",
                   "--jwt-issuer",    "https://id.test"};
  gateway_ = std::make_unique<Gateway>(options);
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const auto as = [&](const std::string& token) {
    return with(nameless, "Authorization", "Bearer " + token);
  };
  const std::string claims = R"({"iss":"https://id.test","exp":4102444800,"tenant":"acme"})";
  const auto token = key.token(claims, "a");
  foretold(as(token), "execute");
  foretold(as(token), "replay");
  EXPECT_EQ(foretold(as(token.substr(0, token.size() - 4) + "AAAA"), "refused")["answer"]["status"]
                .integer,
            401);
}

TEST_F(ExplainLive, S09_what_decides_about_the_scope_and_is_not_known_is_said) {
  start_with({}, {"--scope", "header:X-Tenant-Id", "--trusted-proxy", "10.0.0.0/8"});
  const Json said = explain(charge("k"));
  EXPECT_EQ(said["outcome"].string, "execute");
  EXPECT_NE(said["why"].string.find("only from a trusted proxy"), std::string::npos);

  EXPECT_EQ(gateway_->terminate(), 0);
  Authority authority(dir_.path() / "pki", "ca");
  const auto own = authority.issue({.common_name = "gateway", .other_names = {"DNS:localhost"}});
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "mtls.db";
  options.scope = {"--scope", "mtls"};
  options.flags = {"--tls-cert", own.certificate,   "--tls-key",
                   own.key,      "--tls-client-ca", authority.file()};
  gateway_ = std::make_unique<Gateway>(options);
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const Json nobody = explain(charge("k"));
  EXPECT_EQ(nobody["outcome"].string, "refused");
  EXPECT_EQ(nobody["answer"]["code"].string, "scope_missing");
  EXPECT_NE(nobody["why"].string.find("certificate"), std::string::npos);
  EXPECT_EQ(explain(charge("k"), R"(,"scope":"acme")")["outcome"].string, "execute");
}

TEST_F(ExplainLive, T30_a_damaged_record_is_said_to_be_refused) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(gateway_->terminate(), 0);
  spoil_records(dir_.path() / "idem.db");
  gateway_ = std::make_unique<Gateway>(options(provider_->address()));
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const Json said = foretold(charge("k"), "refused");
  EXPECT_EQ(said["answer"]["code"].string, "record_damaged");
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ExplainLive, V35_says_that_the_authoriser_was_not_asked) {
  start_with({"--authorize-url", "http://127.0.0.1:1/check"});
  const Json said = explain(charge("k"));
  EXPECT_EQ(said["outcome"].string, "execute");
  EXPECT_NE(said["why"].string.find("authoriser was not asked"), std::string::npos);
}

class ExplainLater : public Explained {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    provider_ = std::make_unique<Provider>();
    auto options = this->options(provider_->address());
    options.program = "idem-crash";
    options.environment = {clock_.environment()};
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    clock_.move_also_under(dir_.path() / "idem.db");
  }
  MovedClock clock_;
};

TEST_F(ExplainLater, V25_foretells_an_expired_key_and_one_that_is_new_again) {
  constexpr std::int64_t day = 24 * 3600;
  ASSERT_EQ(ask(charge("k")).status, 201);
  clock_.pass(day + 1);
  const Json said = foretold(charge("k"), "expired");
  EXPECT_EQ(said["answer"]["status"].integer, 410);
  EXPECT_EQ(said["record"]["state"].string, "expired");
  clock_.pass(400 * day);
  EXPECT_EQ(foretold(charge("k"), "execute")["record"].kind, Json::Kind::null);
}

}  // namespace
}  // namespace idem::test
