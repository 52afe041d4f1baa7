#include <fmt/format.h>

#include "support/back_off.hpp"
#include "support/postgres.hpp"
#include "support/shadowed.hpp"

/// A shadow route whose store is away.
namespace idem::test {
namespace {

class ShadowStoreGone : public Shadowed {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    provider_ = std::make_unique<Provider>();
    server_ = std::make_unique<PostgresServer>();
    gateway_ = std::make_unique<Gateway>(GatewayOptions{.upstream = provider_->address(),
                                                        .store_url = server_->uri(),
                                                        .flags = {"--enforce", "shadow"}});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  std::unique_ptr<PostgresServer> server_;
};

TEST_F(ShadowStoreGone, S22_every_request_passes_while_the_store_is_away) {
  ASSERT_EQ(ask(charge("before")).status, 201);
  EXPECT_EQ(report(1)["first"].integer, 1);
  server_->stop();
  constexpr int away = 200;
  for (int i = 0; i < away; ++i) {
    const auto answer = ask(charge(fmt::format("away-{}", i)));
    ASSERT_EQ(answer.status, 201) << answer.raw;
  }
  const Json seen = report(1 + away);
  EXPECT_EQ(seen["not_observed"].integer, away);
  EXPECT_EQ(
      seen["not_observed_by"]["store"].integer + seen["not_observed_by"]["store_slow"].integer,
      away);
  server_->start();
  const auto until = std::chrono::steady_clock::now() + patience;
  while (get("/readyz").status != 200 && std::chrono::steady_clock::now() < until) {
    back_off();
  }
  int asked = 1 + away;
  std::int64_t first = 1;
  while (first == 1 && std::chrono::steady_clock::now() < until) {
    ASSERT_EQ(ask(charge(fmt::format("after-{}", asked))).status, 201);
    first = report(++asked)["first"].integer;
  }
  EXPECT_GT(first, 1) << "it is observed again";
}

}  // namespace
}  // namespace idem::test
