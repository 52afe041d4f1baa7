#include <gtest/gtest.h>

#include "support/json.hpp"
#include "support/live.hpp"

/// One tenant's quota (protocol.md §5, §6), as its clients see it.
namespace idem::test {
namespace {

class QuotaLive : public Live {
 protected:
  void SetUp() override {}
  void start(std::vector<std::string> flags) {
    provider_ = std::make_unique<Provider>();
    auto options = this->options(provider_->address());
    options.flags = std::move(flags);
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  int arrivals() const { return provider_->ledger().arrivals; }
  /// By another tenant.
  static Request of(const std::string& tenant, Request request) {
    return with(without(std::move(request), "X-Tenant-Id"), "X-Tenant-Id", tenant);
  }
};

TEST_F(QuotaLive, T39_V34_keys_beyond_the_quota_are_refused_and_retries_are_not) {
  ASSERT_NO_FATAL_FAILURE(start({"--quota-active-keys", "2"}));
  const auto first = ask(charge("k1"));
  ASSERT_EQ(first.status, 201);
  ASSERT_EQ(ask(charge("k2")).status, 201);
  for (int i = 0; i < 100; ++i) {
    const auto refused = ask(charge("sprayed-" + std::to_string(i)));
    ASSERT_TRUE(is_problem(refused, 429, "quota_exceeded")) << refused.raw;
    const auto problem = parse_json(refused.body).value_or(Json());
    EXPECT_EQ(problem["retry"].string, "same_key");
    EXPECT_TRUE(problem["state"].string.empty()) << "nothing is stored of it";
    EXPECT_EQ(refused.get("Retry-After"), "3600");
  }
  EXPECT_EQ(arrivals(), 2) << "nothing of that was dispatched";
  EXPECT_TRUE(replays(first, ask(charge("k1"))));
  EXPECT_TRUE(is_problem(ask(charge("k1", "", R"({"amount":7})")), 422, "key_reused"));
  EXPECT_EQ(ask(of("umbrella", charge("k1"))).status, 201) << "each tenant has its own";
  EXPECT_EQ(arrivals(), 3);
}

TEST_F(QuotaLive, V34_new_keys_come_at_their_rate) {
  ASSERT_NO_FATAL_FAILURE(
      start({"--quota-new-keys-per-second", "1", "--quota-new-keys-at-once", "3"}));
  int let_in = 0;
  Response refused;
  for (int i = 0; i < 1'000 && refused.status != 429; ++i) {
    refused = ask(charge("k" + std::to_string(i)));
    if (refused.status == 201) ++let_in;
  }
  EXPECT_TRUE(is_problem(refused, 429, "quota_exceeded")) << refused.raw;
  EXPECT_GE(let_in, 3);
  EXPECT_EQ(arrivals(), let_in);
  EXPECT_EQ(refused.get("Retry-After"), "1");
  EXPECT_EQ(ask(charge("k0")).status, 201) << "a replay";
  EXPECT_EQ(arrivals(), let_in);
}

TEST_F(QuotaLive, V34_bytes_are_bounded_without_being_asked_for) {
  ASSERT_NO_FATAL_FAILURE(start({"--quota-stored-bytes", "3KiB"}));
  for (const auto* key : {"k1", "k2", "k3"}) EXPECT_EQ(ask(charge(key)).status, 201);
  EXPECT_TRUE(is_problem(ask(charge("k4")), 429, "quota_exceeded"));
  EXPECT_EQ(ask(charge("k2")).status, 201);
  EXPECT_EQ(arrivals(), 3);
}

TEST_F(QuotaLive, V34_guessing_keys_of_others_reveals_nothing) {
  ASSERT_NO_FATAL_FAILURE(start({}));
  ASSERT_EQ(ask(charge("theirs")).status, 201);
  const auto guessed = ask(of("umbrella", charge("theirs")));
  const auto new_one = ask(of("umbrella", charge("nobodys")));
  EXPECT_EQ(guessed.status, 201);
  EXPECT_FALSE(guessed.get("Idempotent-Replayed"));
  EXPECT_FALSE(new_one.get("Idempotent-Replayed"));
  EXPECT_EQ(guessed.get("Idempotency-Outcome"), new_one.get("Idempotency-Outcome"));
  EXPECT_EQ(arrivals(), 3) << "the store was asked for a record of that tenant's own, which is new";
}

}  // namespace
}  // namespace idem::test
