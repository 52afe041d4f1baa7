#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "crash/judge.hpp"
#include "support/scripted_upstream.hpp"

// T08, T21: an owner that sleeps past its lease and wakes up. It must notice before it sends, and
// what it sent before must be settled without a second run.

namespace idem::test {
namespace {

class StoppedOwner : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    gateway_ = std::make_unique<Gateway>(
        GatewayOptions{.upstream = provider_.address(),
                       .store = dir_.path() / "idem.db",
                       .flags = short_lease(),
                       .environment = {fmt::format("IDEM_STOP_AT={}", GetParam())},
                       .program = "idem-crash"});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_P(StoppedOwner, T08_never_causes_a_second_effect) {
  Connection owner(gateway_->address());
  owner.send(charge("k"));
  ASSERT_TRUE(gateway_->process().wait_stopped()) << "the point was not reached";
  // The kernel accepts this one for the sleeping process, which meets it when it wakes up.
  Connection duplicate(gateway_->address());
  duplicate.send(charge("k"));
  // The one place where real time must pass: a lease is a matter of the clock, and it is the whole
  // process that sleeps. The lease is 2 s.
  std::this_thread::sleep_for(std::chrono::milliseconds(3500));
  gateway_->carry_on();

  Judge judge;
  judge.sent("k", charge("k"));
  const auto first = owner.read_response();
  judge.answered("k", first);
  judge.answered("k", duplicate.read_response());
  const bool was_sent = std::string_view(GetParam()) == "dispatch_sent";
  if (!was_sent) {
    EXPECT_NE(first.status, 201) << "it sent although its lease no longer covered the dispatch";
  }
  const auto verdict = judge.conclude(gateway_->address(), provider_);
  for (const auto& violation : verdict.violations) ADD_FAILURE() << violation;
  const auto counts = provider_.of_key("k");
  EXPECT_LE(counts.effects, 1);
  if (was_sent) {
    EXPECT_EQ(counts.effects, 1);
    EXPECT_EQ(counts.arrivals, 1);
  }
  fmt::print("stopped at {}: owner got {}, effects {}, replayed {}, unknown {}, violations={}\n",
             GetParam(), first.status, counts.effects, verdict.replayed, verdict.unknown,
             verdict.violations.size());
}

INSTANTIATE_TEST_SUITE_P(Points, StoppedOwner,
                         testing::Values("reserve_after_commit", "dispatch_before_first_byte",
                                         "dispatch_sent"),
                         [](const auto& point) { return std::string(point.param); });

// The pooled connection dies between the look at it and the first byte. What was read of the
// client's body by then belongs to the request that goes over the next one.
TEST(StoppedRelay, P23_a_body_is_sent_again_with_its_head_on_another_connection) {
  IDEM_NEED_PROGRAM("idem-crash");
  Gate stopped;
  Gate reset;
  ScriptedUpstream upstream([&](UpstreamConnection& connection) {
    if (connection.index() > 0) return ScriptedUpstream::answer_all(connection);
    if (!connection.read_request() || !connection.write_answer("warm")) return;
    stopped.wait();
    connection.reset();
    reset.open();
  });
  TempDir dir;
  Gateway gateway({.upstream = upstream.address(),
                   .store = dir.path() / "idem.db",
                   .flags = {"--threads", "1", "--keepalive-idle", "60s"},
                   .environment = {"IDEM_STOP_AT=dispatch_before_first_byte:2"},
                   .program = "idem-crash"});
  ASSERT_TRUE(gateway.running()) << gateway.process().output();
  Connection client(gateway.address());
  ASSERT_EQ(client.exchange({.method = "GET", .target = "/"}).body, "warm");
  client.send({.method = "PUT", .target = "/file", .body = "all of the body"});
  ASSERT_TRUE(gateway.process().wait_stopped()) << "the point was not reached";
  stopped.open();
  ASSERT_TRUE(reset.wait());
  gateway.carry_on();
  EXPECT_EQ(client.read_response().body, "ok");
  const auto received = upstream.received();
  ASSERT_EQ(received.size(), 2u);
  EXPECT_TRUE(received[1].ends_with("\r\n\r\nall of the body")) << received[1];
}

}  // namespace
}  // namespace idem::test
