#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <random>
#include <thread>

#include "crash/judge.hpp"

// kill -9 at random moments under load, again and again on one store, while clients go on.

namespace idem::test {
namespace {

constexpr int clients_per_gateway = 4;

/// Where the gateway is at the moment; clients wait here while there is none.
class Whereabouts {
 public:
  void publish(std::string address) {
    const std::lock_guard lock(mutex_);
    address_ = std::move(address);
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  /// Empty once it is over.
  std::string wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !address_.empty(); });
    return ended_ ? std::string{} : address_;
  }
  /// Counts a request on its way; kill moments are chosen by this count.
  void count_request() {
    const std::lock_guard lock(mutex_);
    ++requests_;
    changed_.notify_all();
  }
  void wait_for_requests(int more) {
    std::unique_lock lock(mutex_);
    const int target = requests_ + more;
    changed_.wait_for(lock, patience, [&] { return requests_ >= target; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string address_;
  bool ended_ = false;
  int requests_ = 0;
};

/// New keys, and one time in three an old one: some of those lost their answer in a crash.
void run_client(int client, unsigned seed, Whereabouts& whereabouts, Judge& judge) {
  std::mt19937 random(seed + static_cast<unsigned>(client) * 104729U);
  int next = 0;
  for (;;) {
    const auto address = whereabouts.wait();
    if (address.empty()) return;
    Connection connection(address);
    for (bool alive = connection.open(); alive;) {
      const bool old = next > 0 && random() % 3 == 0;
      const int number = old ? static_cast<int>(random() % static_cast<unsigned>(next)) : next++;
      // Neighbours share every second key, so duplicates race each other too.
      const int owner = number % 2 == 0 ? client : client / 2;
      const auto key = fmt::format("{}-{}-{}", number % 2 == 0 ? "own" : "shared", owner, number);
      const auto request = charge(key);
      judge.sent(key, request);
      whereabouts.count_request();
      const auto answer = connection.exchange(request);
      judge.heard(key, answer);
      alive = answer.status != 0;
    }
    if (whereabouts.wait() == address) ::poll(nullptr, 0, 1);  // Not yet told that it is dead.
  }
}

struct Outcome {
  int kills = 0;
  std::string trouble;
  Verdict verdict;
};

Outcome kill_again_and_again(int kills, unsigned seed) {
  std::mt19937 random(seed);
  const TempDir dir;
  const Provider provider;
  Gateway gateway({.upstream = provider.address(),
                   .store = dir.path() / "idem.db",
                   .flags = short_lease(),
                   .program = "idem-crash"});
  Outcome outcome;
  Judge judge;
  Whereabouts whereabouts;
  std::vector<std::thread> clients;
  for (int i = 0; i < clients_per_gateway; ++i) {
    clients.emplace_back([&, i] { run_client(i, seed, whereabouts, judge); });
  }
  while (outcome.kills < kills && gateway.running()) {
    whereabouts.publish(gateway.address());
    whereabouts.wait_for_requests(1 + static_cast<int>(random() % 60));
    ::poll(nullptr, 0, static_cast<int>(random() % 3));  // Anywhere inside a request.
    gateway.kill();
    gateway.process().wait();
    whereabouts.publish({});
    ++outcome.kills;
    gateway.restart();
  }
  whereabouts.end();
  for (auto& client : clients) client.join();
  if (gateway.running()) {
    outcome.verdict = judge.conclude(gateway.address(), provider);
  } else {
    outcome.trouble = "did not start again: " + gateway.process().output();
  }
  return outcome;
}

TEST(RandomKills, V19_NoKeyRunsTwiceAndNoAnswerIsLost) {
  IDEM_NEED_PROGRAM("idem-crash");
  const int kills = number_from("IDEM_CRASH_KILLS", 160);
  const unsigned seed = seed_of_this_run();
  fmt::print("seed={}\n", seed);
  Outcome outcomes[2];
  std::thread other([&] { outcomes[1] = kill_again_and_again(kills / 2, seed + 1); });
  outcomes[0] = kill_again_and_again(kills - kills / 2, seed);
  other.join();

  Verdict total;
  int done = 0;
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.trouble, "");
    done += outcome.kills;
    total.add(outcome.verdict);
  }
  for (const auto& violation : total.violations) ADD_FAILURE() << violation;
  EXPECT_EQ(done, kills);
  fmt::print("random seed={} kills={}, keys judged={} (replayed {}, unknown {}), violations={}\n",
             seed, done, total.keys, total.replayed, total.unknown, total.violations.size());
}

}  // namespace
}  // namespace idem::test
