#include <gtest/gtest.h>

#include "support/live.hpp"

// The judge is tried before the accused: a provider that cannot see a duplicate proves nothing.

namespace idem::test {
namespace {

TEST(TheProvider, CountsEveryDuplicateThatReachesIt) {
  const Provider provider;
  ASSERT_TRUE(provider.running());
  const auto first = send_once(provider.address(), charge("k"));
  const auto second = send_once(provider.address(), charge("k"));
  EXPECT_EQ(first.status, 201);
  EXPECT_NE(first.body, second.body) << "the nonce must tell executions apart";
  EXPECT_EQ(provider.effects("k"), 2);
  EXPECT_EQ(provider.ledger().effects, 2);
}

TEST(TheProvider, TellsArrivalsFromEffects) {
  const Provider provider;
  send_once(provider.address(), charge("refused", "refuse=429"));
  send_once(provider.address(), charge("dropped", "drop-before"));
  send_once(provider.address(), charge("charged", "drop-after"));
  const auto ledger = provider.ledger();
  EXPECT_EQ(ledger.effects, 1);
  EXPECT_EQ(ledger.arrivals, 3);
  EXPECT_EQ(ledger.keys.at("charged").effects, 1);
  EXPECT_EQ(ledger.keys.at("refused").arrivals, 1);
}

TEST(TheProvider, BreaksAnswersAsAsked) {
  const Provider provider;
  const auto ask = [&](std::string_view faults) {
    return send_once(provider.address(), charge("k", faults));
  };
  EXPECT_EQ(ask("drop-after").trouble, "closed");
  EXPECT_EQ(ask("truncate").trouble, "cut: closed");
  EXPECT_EQ(ask("truncate-chunked").trouble, "cut: closed");
  EXPECT_EQ(ask("garbage").trouble, "no HTTP/1.1 answer");
  EXPECT_EQ(ask("interim").interim, std::vector<int>{103});
  EXPECT_EQ(ask("size=3000000").body.size(), 3'000'000U);
  EXPECT_EQ(ask("chunked").get("Transfer-Encoding"), "chunked");
  EXPECT_EQ(ask("until-close").status, 201);
  EXPECT_EQ(ask("misspelt").status, 418);
  EXPECT_EQ(provider.effects("k"), 8);
}

TEST(TheProvider, HoldsRequestsUntilToldToGoOn) {
  const Provider provider;
  Connection held(provider.address());
  Connection gated(provider.address());
  held.send(charge("after", "hold=h"));
  gated.send(charge("before", "gate-before=h"));
  ASSERT_TRUE(provider.wait_held("h", 2));
  EXPECT_EQ(provider.effects("after"), 1);
  EXPECT_EQ(provider.effects("before"), 0);
  provider.release("h");
  EXPECT_EQ(held.read_response().status, 201);
  EXPECT_EQ(gated.read_response().status, 201);
  EXPECT_EQ(provider.effects("before"), 1);
}

}  // namespace
}  // namespace idem::test
