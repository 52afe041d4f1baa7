#include <gtest/gtest.h>

#include "support/live.hpp"

namespace idem::test {
namespace {

// A second replay of the same bytes is answered from memory. Nothing else may be.
class ReplayFromMemory : public Live {
 protected:
  void SetUp() override {
    Live::SetUp();
    first_ = ask(charge("k"));
    ASSERT_EQ(first_.status, 201) << first_.raw;
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(replays(first_, ask(charge("k"))));
  }

  std::vector<std::string> flags() const override { return {"--threads", "1"}; }

  Response first_;
};

TEST_F(ReplayFromMemory, OtherContentIsStillMisuse) {
  EXPECT_TRUE(
      is_problem(ask(charge("k", "", R"({"amount":1251,"currency":"EUR"})")), 422, "key_reused"));
  auto elsewhere = charge("k");
  elsewhere.target += "?a=1";
  EXPECT_TRUE(is_problem(ask(elsewhere), 422, "key_reused"));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ReplayFromMemory, TheSameContentInOtherBytesIsTheSameRequest) {
  EXPECT_TRUE(replays(first_, ask(charge("k", "", R"({ "currency":"EUR", "amount":1250 })"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ReplayFromMemory, AnotherTenantWithTheSameBytesHearsNothingOfIt) {
  const auto other = with(without(charge("k"), "X-Tenant-Id"), "X-Tenant-Id", "globex");
  const auto theirs = ask(other);
  EXPECT_EQ(theirs.status, 201);
  EXPECT_FALSE(theirs.get("Idempotent-Replayed"));
  EXPECT_EQ(effects("k"), 2);
}

TEST_F(ReplayFromMemory, TwoKeysAreStillRefused) {
  EXPECT_EQ(ask(with(charge("k"), "Idempotency-Key", "other")).status, 400);
  EXPECT_EQ(ask(with(charge("k"), "Idempotency_Key", "other")).status, 400);
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ReplayFromMemory, ANewScopeFieldIsStillNeeded) {
  EXPECT_TRUE(is_problem(ask(without(charge("k"), "X-Tenant-Id")), 401, "scope_missing"));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ReplayFromMemory, AConnectionGoesOnBehindIt) {
  Connection connection(gateway_->address());
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(
        connection.send_raw(to_wire(charge("k")) + to_wire(charge("n" + std::to_string(i)))));
    EXPECT_TRUE(replays(first_, connection.read_response()));
    const auto next = connection.read_response();
    EXPECT_EQ(next.status, 201);
    EXPECT_FALSE(next.get("Idempotent-Replayed"));
  }
}

TEST_F(ReplayFromMemory, WhatTheOperatorSeesCountsItToo) {
  const Request request{
      .method = "GET", .target = "/metrics", .fields = {{"Host", gateway_->admin()}}};
  const auto metrics = send_once(gateway_->admin(), request);
  ASSERT_EQ(metrics.status, 200) << metrics.raw;
  EXPECT_NE(metrics.body.find("idem_reserve_total{outcome=\"replay\"} 8"), std::string::npos)
      << metrics.body;
}

}  // namespace
}  // namespace idem::test
