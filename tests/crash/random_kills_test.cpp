#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <random>
#include <thread>

#include "crash/clients.hpp"

// kill -9 at random moments under load, again and again on one store, while clients go on.

namespace idem::test {
namespace {

constexpr int clients_per_gateway = 4;

struct Outcome {
  int kills = 0;
  std::string trouble;
  Verdict verdict;
};

Outcome kill_again_and_again(const std::string& kind, int kills, unsigned seed) {
  std::mt19937 random(seed);
  const TempDir dir;
  const Provider provider;
  Gateway gateway({.upstream = provider.address(),
                   .store_url = kind + ":" + (dir.path() / "idem.db").string(),
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

class RandomKills : public testing::TestWithParam<const char*> {};

TEST_P(RandomKills, V19_no_key_runs_twice_and_no_answer_is_lost) {
  IDEM_NEED_PROGRAM("idem-crash");
  const int kills = number_from("IDEM_CRASH_KILLS", 100);
  const unsigned seed = seed_of_this_run();
  fmt::print("seed={}\n", seed);
  Outcome outcomes[2];
  std::thread other([&] { outcomes[1] = kill_again_and_again(GetParam(), kills / 2, seed + 1); });
  outcomes[0] = kill_again_and_again(GetParam(), kills - kills / 2, seed);
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
  fmt::print(
      "{} random seed={} kills={}, keys judged={} (replayed {}, unknown {}), violations={}\n",
      GetParam(), seed, done, total.keys, total.replayed, total.unknown, total.violations.size());
}

INSTANTIATE_TEST_SUITE_P(Stores, RandomKills, testing::Values("sqlite", "embedded"),
                         [](const auto& named) { return std::string(named.param); });

}  // namespace
}  // namespace idem::test
