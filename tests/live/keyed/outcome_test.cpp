#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Outcome = Live;

TEST_F(Outcome, T18_T19_T31_a_server_error_after_charging_is_unknown_and_never_run_again) {
  for (const int status : {500, 501, 502, 503, 504, 505, 599}) {
    const auto key = fmt::format("status-{}", status);
    const auto first = ask(charge(key, fmt::format("status={}", status)));
    EXPECT_EQ(first.status, status) << "the first caller gets the upstream's own answer";
    EXPECT_TRUE(first.get("X-Provider-Effect"));
    EXPECT_EQ(first.get("Idempotency-Outcome"), "unknown");
    const auto retry = ask(charge(key));
    EXPECT_TRUE(is_problem(retry, 409, "outcome_unknown"));
    EXPECT_EQ(json_text(retry.body, "state"), "unknown");
    EXPECT_EQ(effects(key), 1);
  }
}

TEST_F(Outcome, S12_timeouts_and_conflicts_that_ask_to_wait_are_unknown) {
  const std::pair<const char*, int> cases[] = {{"status=408", 408},
                                               {"status=409,header=Retry-After:1", 409}};
  for (const auto& [faults, status] : cases) {
    const auto key = fmt::format("k{}", status);
    const auto first = ask(charge(key, faults));
    EXPECT_EQ(first.status, status);
    EXPECT_EQ(first.get("Idempotency-Outcome"), "unknown");
    EXPECT_TRUE(is_problem(ask(charge(key)), 409, "outcome_unknown"));
    EXPECT_EQ(effects(key), 1);
  }
}

TEST_F(Outcome, T31_refusals_that_are_declared_harmless_are_released) {
  for (const int status : {401, 403, 429}) {
    const auto key = fmt::format("status-{}", status);
    const auto first = ask(charge(key, fmt::format("refuse={},header=Retry-After:7", status)));
    EXPECT_EQ(first.status, status);
    EXPECT_EQ(first.get("Idempotency-Outcome"), "released");
    EXPECT_EQ(first.get("Retry-After"), "7");
    const auto retry = ask(charge(key));
    EXPECT_EQ(retry.status, 201) << "the retry runs";
    EXPECT_FALSE(retry.get("Idempotent-Replayed"));
    EXPECT_TRUE(replays(retry, ask(charge(key))));
    EXPECT_EQ(effects(key), 1);
  }
}

TEST_F(Outcome, S11_statuses_that_prove_non_execution_are_released) {
  for (const int status : {421, 425}) {
    const auto key = fmt::format("status-{}", status);
    const auto first = ask(charge(key, fmt::format("refuse={}", status)));
    EXPECT_EQ(first.status, status);
    EXPECT_EQ(first.get("Idempotency-Outcome"), "released");
    EXPECT_EQ(ask(charge(key)).status, 201);
    EXPECT_EQ(effects(key), 1);
  }
}

TEST_F(Outcome, S01_attempts_have_fences_that_grow) {
  ask(charge("k", "status=429"));  // Charged, and declared harmless by the default policy.
  ask(charge("k", "status=429"));
  ask(charge("k"));
  const auto fences = provider_->of_key("k").fences;
  ASSERT_EQ(fences.size(), 3U);
  EXPECT_LT(std::atoll(fences[0].c_str()), std::atoll(fences[1].c_str()));
  EXPECT_LT(std::atoll(fences[1].c_str()), std::atoll(fences[2].c_str()));
}

TEST_F(Outcome, S12_the_upstreams_outcome_field_wins_and_is_not_passed_on) {
  struct {
    const char* key;
    const char* faults;
    int status;
    const char* outcome;
  } const cases[] = {{"a", "status=500,outcome=store", 500, "stored"},
                     {"b", "refuse=500,outcome=not-executed", 500, "released"},
                     {"c", "status=201,outcome=unknown", 201, "unknown"}};
  for (const auto& given : cases) {
    const auto first = ask(charge(given.key, given.faults));
    EXPECT_EQ(first.status, given.status);
    EXPECT_EQ(first.get("Idempotency-Outcome"), given.outcome) << given.faults;
    EXPECT_FALSE(first.get("Idem-Outcome"));
  }
  EXPECT_EQ(ask(charge(cases[0].key)).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(ask(charge(cases[1].key)).status, 201);
  EXPECT_TRUE(is_problem(ask(charge(cases[2].key)), 409, "outcome_unknown"));
}

// It says itself that it worked, or something that we cannot read: no proof of the contrary.
TEST_F(Outcome, S12_an_outcome_field_beside_a_proof_that_contradicts_it_is_unknown) {
  struct {
    const char* key;
    const char* faults;
  } const cases[] = {{"a", "status=425,outcome=store"},
                     {"b", "status=421,outcome=unknown"},
                     {"c", "status=425,outcome=bogus"}};
  for (const auto& given : cases) {
    const auto first = ask(charge(given.key, given.faults));
    EXPECT_EQ(first.get("Idempotency-Outcome"), "unknown") << given.faults;
    EXPECT_TRUE(is_problem(ask(charge(given.key)), 409, "outcome_unknown"));
    EXPECT_EQ(effects(given.key), 1);
  }
}

TEST_F(Outcome, S11_a_body_that_ends_by_closing_is_not_known_to_be_whole) {
  const auto first = ask(charge("k", "until-close"));
  EXPECT_EQ(first.get("Idempotency-Outcome").value_or("unknown"), "unknown") << first.raw;
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Outcome, unknown_gives_the_retry_no_time_to_come_back_until_it_is_settled) {
  ask(charge("k", "drop-after"));
  const auto retry = ask(charge("k"));
  EXPECT_TRUE(is_problem(retry, 409, "outcome_unknown"));
  const bool scheduled = retry.get("Retry-After").has_value();
  EXPECT_EQ(json_text(retry.body, "retry"), scheduled ? "later" : "never");
}

TEST_F(Outcome, V29_unknown_survives_a_restart) {
  ask(charge("k", "drop-after"));
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(effects("k"), 1);
}

}  // namespace
}  // namespace idem::test
