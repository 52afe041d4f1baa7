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

TEST_F(ReplayFromMemory, other_content_is_still_misuse) {
  EXPECT_TRUE(
      is_problem(ask(charge("k", "", R"({"amount":1251,"currency":"EUR"})")), 422, "key_reused"));
  auto elsewhere = charge("k");
  elsewhere.target += "?a=1";
  EXPECT_TRUE(is_problem(ask(elsewhere), 422, "key_reused"));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ReplayFromMemory, the_same_content_in_other_bytes_is_the_same_request) {
  EXPECT_TRUE(replays(first_, ask(charge("k", "", R"({ "currency":"EUR", "amount":1250 })"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ReplayFromMemory, another_tenant_with_the_same_bytes_learns_nothing_of_it) {
  const auto other = with(without(charge("k"), "X-Tenant-Id"), "X-Tenant-Id", "globex");
  const auto theirs = ask(other);
  EXPECT_EQ(theirs.status, 201);
  EXPECT_FALSE(theirs.get("Idempotent-Replayed"));
  EXPECT_EQ(effects("k"), 2);
}

TEST_F(ReplayFromMemory, two_keys_are_still_refused) {
  EXPECT_EQ(ask(with(charge("k"), "Idempotency-Key", "other")).status, 400);
  EXPECT_EQ(ask(with(charge("k"), "Idempotency_Key", "other")).status, 400);
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ReplayFromMemory, a_new_scope_field_is_still_needed) {
  EXPECT_TRUE(is_problem(ask(without(charge("k"), "X-Tenant-Id")), 401, "scope_missing"));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ReplayFromMemory, a_connection_goes_on_behind_it) {
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

TEST_F(ReplayFromMemory, the_operators_view_counts_it_too) {
  const Request request{
      .method = "GET", .target = "/metrics", .fields = {{"Host", gateway_->admin()}}};
  const auto metrics = send_once(gateway_->admin(), request);
  ASSERT_EQ(metrics.status, 200) << metrics.raw;
  EXPECT_NE(metrics.body.find("idem_reserve_total{outcome=\"replay\"} 8"), std::string::npos)
      << metrics.body;
}

}  // namespace
}  // namespace idem::test
