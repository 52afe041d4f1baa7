#include <gtest/gtest.h>

#include "support/live.hpp"

// What ./test --quick asks of a gateway: one request, its replays, and one effect, across a kill.
namespace idem::test {
namespace {

using Smoke = Live;

TEST_F(Smoke, a_request_has_one_effect_and_its_retries_are_replays) {
  const auto first = ask(charge("k"));
  ASSERT_EQ(first.status, 201) << first.raw;
  EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_EQ(ask(charge("k", {}, R"({"amount":9})")).status, 422);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_EQ(effects("k"), 1);
  EXPECT_EQ(provider_->ledger().arrivals, 1);
  EXPECT_EQ(ask(charge("other")).status, 201);
  EXPECT_EQ(provider_->ledger().effects, 2);
}

}  // namespace
}  // namespace idem::test
