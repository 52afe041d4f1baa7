#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <deque>
#include <string>

#include "support/bulk.hpp"
#include "support/live.hpp"

namespace idem::test {
namespace {

/// limits::waiters_per_key_max, where the machine bears it.
constexpr std::size_t herd = sanitized ? 400 : 4'096;

class WaitHerd : public Live {
 protected:
  void SetUp() override {
    rlimit files{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_max < herd + 200) GTEST_SKIP() << "only " << files.rlim_max << " descriptors";
    Live::SetUp();
  }
  std::vector<std::string> flags() const override {
    return {"--mode",
            "wait",
            "--wait-max",
            "5m",
            "--connections-per-address",
            "10000",
            "--upstream-timeout",
            "100s",
            "--lease",
            "110s"};
  }
};

/// Those that have something to read; waits until there is one.
std::vector<std::size_t> readable(const std::deque<Connection>& connections, int milliseconds) {
  std::vector<pollfd> polled;
  for (auto& connection : connections) {
    polled.push_back(
        {.fd = const_cast<Connection&>(connection).socket().fd(), .events = POLLIN, .revents = 0});
  }
  std::vector<std::size_t> found;
  if (::poll(polled.data(), polled.size(), milliseconds) <= 0) return found;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) found.push_back(i);
  }
  return found;
}

TEST_F(WaitHerd, S07_V12_thousands_of_waiters_are_one_dispatch_and_get_the_same_bytes) {
  Connection first(gateway_->address());
  first.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const auto before = anonymous_bytes(gateway_->process().pid());
  std::deque<Connection> waiters;
  const std::size_t count = sanitized ? herd : herd + 1;
  for (std::size_t i = 0; i < count; ++i) {
    waiters.emplace_back(gateway_->address());
    ASSERT_TRUE(waiters.back().send(charge("k")));
  }
  if (!sanitized) {
    // One more than may wait: so all others have their places once it was refused.
    const auto refused = readable(waiters, static_cast<int>(patience.count()) * 1000);
    ASSERT_EQ(refused.size(), 1U);
    auto& one = waiters[refused.front()];
    EXPECT_TRUE(is_problem(one.read_response(), 409, "in_progress"));
    waiters.erase(waiters.begin() + static_cast<std::ptrdiff_t>(refused.front()));
    const auto bytes = anonymous_bytes(gateway_->process().pid()) - before;
    const double kib = static_cast<double>(bytes) / 1024 / static_cast<double>(herd);
    RecordProperty("kib_per_waiter_with_its_connection", fmt::format("{:.1f}", kib));
    fmt::print("{} waiters: {:.1f} KiB each, with the connection\n", herd, kib);
    EXPECT_LT(kib, 64) << "half of a head buffer's size more would not fit the default limits";
  }
  EXPECT_EQ(ask(charge("another")).status, 201) << "others must not suffer";
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);

  provider_->release("h");
  const auto answer = first.read_response();
  std::string bytes;
  for (auto& waiter : waiters) {
    const auto replay = waiter.read_response();
    if (bytes.empty()) {
      ASSERT_TRUE(replays(answer, replay));
      bytes = replay.raw;
    }
    ASSERT_EQ(replay.raw, bytes);
  }
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
  EXPECT_EQ(effects("k"), 1);
}

// As many again and again, each round on a key of its own, so that every order of meeting,
// completing and waking comes up; nobody may be left waiting.
TEST_F(WaitHerd, S07_V01_no_wake_up_is_lost_without_a_hold_either) {
  constexpr int rounds = sanitized ? 30 : 100;
  std::deque<Connection> clients;
  for (int i = 0; i < 24; ++i) clients.emplace_back(gateway_->address());
  for (int round = 0; round < rounds; ++round) {
    const auto key = fmt::format("k{}", round);
    for (auto& client : clients) ASSERT_TRUE(client.send(charge(key)));
    std::string body;
    for (auto& client : clients) {
      const auto answer = client.read_response();
      ASSERT_EQ(answer.status, 201) << answer.trouble << answer.raw;
      if (body.empty()) body = answer.body;
      ASSERT_EQ(answer.body, body);
    }
  }
  const auto ledger = provider_->ledger();
  EXPECT_EQ(ledger.effects, rounds);
  EXPECT_EQ(ledger.arrivals, rounds);
}

}  // namespace
}  // namespace idem::test
