#include <fstream>
#include <string>

#include "support/live.hpp"

/// Settings of one route and not of others, over the wire.
namespace idem::test {
namespace {

class Routes : public Live {
 protected:
  void SetUp() override {
    std::ofstream(file()) << R"(
routes:
  - name: secrets
    match: {methods: [POST], path: /charges/secret}
    store_body: false
  - name: stock
    match: {methods: [POST], path: /charges/stock}
    statuses: {402: release, 409: release, 500: store}
  - name: ledger
    match: {methods: [POST], path: /charges/ledger}
    errors: rolled_back
  - name: metered
    match: {methods: [POST], path: "/charges/metered/{id}"}
    fingerprint: {exclude: [/sent_at], headers: [X-Api-Version]}
  - name: stripes
    match: {methods: [PUT, PATCH], path: /stripes}
    preset: stripe
    mode: wait
    wait_max: 7s
  - match: {methods: [PUT], path: /puts}
)";
    Live::SetUp();
  }
  std::vector<std::string> flags() const override { return {"--config", file().string()}; }
  std::filesystem::path file() const { return dir_.path() / "idem.yaml"; }

  static Request to(std::string_view path, Request request) {
    request.target = path;
    return request;
  }
  bool is_stored(std::string_view text) const {
    return store_content(dir_.path() / "idem.db").find(text) != std::string::npos;
  }
};

TEST_F(Routes, T37_a_body_that_may_not_be_kept_is_given_once) {
  const auto secret = to("/charges/secret", charge("k"));
  const auto first = ask(secret);
  ASSERT_EQ(first.status, 201);
  const auto nonce = json_text(first.body, "nonce");
  ASSERT_FALSE(nonce.empty());
  const auto retry = ask(secret);
  EXPECT_TRUE(is_problem(retry, 409, "response_not_stored"));
  EXPECT_NE(retry.body.find("\"original_status\":201"), std::string::npos) << retry.body;
  EXPECT_EQ(json_text(retry.body, "title"), "The operation ran; its answer was not kept");
  EXPECT_NE(json_text(retry.body, "detail").find("or this operation keeps none"), std::string::npos)
      << "it was not too large";
  EXPECT_EQ(effects("k"), 1);
  EXPECT_FALSE(is_stored(nonce));

  const auto ordinary = ask(charge("other"));
  EXPECT_TRUE(is_stored(json_text(ordinary.body, "nonce"))) << "so the search finds what is there";
}

// A refusal that depended on the state of that moment: whether the same key may succeed later is
// the route's to say.
TEST_F(Routes, T65_a_refusal_stays_one_unless_the_route_declares_otherwise) {
  EXPECT_EQ(ask(charge("kept", "refuse=402")).status, 402);
  const auto again = ask(charge("kept"));
  EXPECT_EQ(again.status, 402);
  EXPECT_EQ(again.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(effects("kept"), 0);

  for (const auto* refusal : {"refuse=402", "refuse=409"}) {
    const std::string key = std::string("stock-") + refusal;
    const auto first = ask(to("/charges/stock", charge(key, refusal)));
    EXPECT_EQ(first.get("Idempotency-Outcome"), "released");
    EXPECT_EQ(ask(to("/charges/stock", charge(key))).status, 201) << "the stock came in";
    EXPECT_EQ(effects(key), 1);
  }
}

TEST_F(Routes, S12_a_status_has_the_meaning_that_the_route_gives_it) {
  const auto failed = ask(to("/charges/stock", charge("k", "status=500")));
  EXPECT_EQ(failed.get("Idempotency-Outcome"), "stored");
  EXPECT_TRUE(replays(failed, ask(to("/charges/stock", charge("k")))));
  EXPECT_EQ(ask(charge("k2", "status=500")).get("Idempotency-Outcome"), "unknown");
}

TEST_F(Routes, S12_where_errors_are_rolled_back_a_5xx_is_a_proof) {
  const auto failed = ask(to("/charges/ledger", charge("k", "refuse=500")));
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.get("Idempotency-Outcome"), "released");
  EXPECT_EQ(ask(to("/charges/ledger", charge("k"))).status, 201);
  EXPECT_EQ(effects("k"), 1);
  // The proxy in front of the service has promised nothing.
  for (const auto* fault : {"refuse=502", "refuse=503", "refuse=504"}) {
    const auto key = std::string("between-") + fault;
    const auto lost = ask(to("/charges/ledger", charge(key, fault)));
    EXPECT_EQ(lost.get("Idempotency-Outcome"), "unknown") << fault;
  }
}

TEST_F(Routes, S10_the_route_defines_the_same_request) {
  const auto at = [](std::string_view moment, std::string_view version) {
    auto request = charge("k", "", R"({"amount":1250,"sent_at":")" + std::string(moment) + "\"}");
    return with(to("/charges/metered/7", request), "X-Api-Version", version);
  };
  const auto first = ask(at("10:00", "1"));
  ASSERT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, ask(at("10:05", "1")))) << "sent_at does not count";
  EXPECT_TRUE(is_problem(ask(at("10:00", "2")), 422, "key_reused")) << "the version does";
  auto elsewhere = charge("d", "", R"({"amount":1,"sent_at":"1"})");
  ASSERT_EQ(ask(elsewhere).status, 201);
  elsewhere.body = R"({"amount":1,"sent_at":"2"})";
  EXPECT_EQ(ask(elsewhere).status, 422) << "on other routes everything counts";
}

TEST_F(Routes, S13_the_policy_document_describes_each_route) {
  const auto document = ask({.method = "GET", .target = "/.well-known/idempotency"}).body;
  for (const std::string_view part :
       {R"("operation":"stripes","methods":["PUT","PATCH"],"path":"/stripes","key_required":true)",
        R"("mode":"wait","wait_max_seconds":7,"key_reused_status":400)",
        R"("methods":["PUT"],"path":"/puts","key_required":false,"mode":"conflict",)"
        R"("wait_max_seconds":30,"key_reused_status":422)"}) {
    EXPECT_NE(document.find(part), std::string::npos) << part << "\n" << document;
  }
}

TEST_F(Routes, V06_one_key_on_two_operations_is_two_records) {
  const auto one = ask(to("/charges/stock", charge("k")));
  const auto two = ask(to("/charges/ledger", charge("k")));
  EXPECT_EQ(one.status, 201);
  EXPECT_EQ(two.status, 201);
  EXPECT_FALSE(two.get("Idempotent-Replayed"));
  EXPECT_TRUE(replays(one, ask(to("/charges/stock", charge("k")))));
}

}  // namespace
}  // namespace idem::test
