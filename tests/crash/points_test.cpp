#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <random>
#include <thread>

#include "crash/judge.hpp"

// V19, T16, T18: the gateway dies by SIGKILL between any two lines that touch the store or the
// wire; a new one on the same store must neither run a key again nor forget an answer that it gave.

namespace idem::test {
namespace {

constexpr std::array points{"parsed",
                            "fingerprinted",
                            "reserve_before_commit",
                            "reserve_after_commit",
                            "dispatch_before_first_byte",
                            "dispatch_mid_request",
                            "dispatch_sent",
                            "response_head",
                            "response_mid_body",
                            "settle_before_commit",
                            "settle_after_commit",
                            "answer_before_first_byte",
                            "answer_mid"};

/// One client's share of the load: fresh keys, and now and then one that others use too.
void send_load(int client, unsigned seed, Gateway& gateway, Judge& judge) {
  std::mt19937 random(seed + static_cast<unsigned>(client) * 7919U);
  for (int i = 0; i < 8 && !gateway.process().ended(); ++i) {
    const auto key =
        random() % 3 == 0 ? fmt::format("shared-{}", i) : fmt::format("{}-{}", client, i);
    const auto shape = shapes[std::hash<std::string>{}(key) % shapes.size()];
    const auto request = charge(key, shape);
    judge.sent(key, request);
    judge.answered(key, send_once(gateway.address(), request));
  }
}

struct CrashedRun {
  bool killed = false;
  std::string trouble{};
  Verdict verdict{};
};

CrashedRun crash_once(const std::string& kind, const std::string& point, unsigned seed) {
  std::mt19937 random(seed);
  const TempDir dir;
  const Provider provider;
  const auto passage = 1 + random() % 4;
  auto flags = short_lease();
  // Every other gateway dies with duplicates parked in it, which its successor must not miss.
  if (seed % 2 == 0) flags.insert(flags.end(), {"--mode", "wait"});
  Gateway gateway({.upstream = provider.address(),
                   .store_url = kind + ":" + (dir.path() / "idem.db").string(),
                   .flags = std::move(flags),
                   .environment = {fmt::format("IDEM_CRASH_AT={}:{}", point, passage)},
                   .program = "idem-crash"});
  if (!gateway.running()) return {.trouble = "did not start: " + gateway.process().output()};
  Judge judge;
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] { send_load(i, seed, gateway, judge); });
  }
  for (auto& client : clients) client.join();

  CrashedRun run;
  // If the point was not reached by now it never will be; the restart below ends the process.
  gateway.process().signal(SIGTERM);
  run.killed = gateway.process().exit_code() == 128 + SIGKILL;
  gateway.restart();
  if (!gateway.running()) {
    run.trouble = "did not start again: " + gateway.process().output();
    return run;
  }
  run.verdict = judge.conclude(gateway.address(), provider);
  return run;
}

class CrashPoints : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(CrashPoints, V19_no_key_runs_twice_and_no_answer_is_lost) {
  IDEM_NEED_PROGRAM("idem-crash");
  const auto [kind, point] = GetParam();
  // The point is the gateway's; how a store keeps its commits is tested by kills at any moment,
  // too.
  const int runs = number_from("IDEM_CRASH_RUNS", kind == std::string_view("sqlite") ? 5 : 3);
  const unsigned seed = seed_of_this_run();
  std::vector<CrashedRun> results(static_cast<std::size_t>(runs));
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&, worker] {
      for (std::size_t i = worker; i < results.size(); i += 2) {
        results[i] = crash_once(kind, point, seed + static_cast<unsigned>(i));
      }
    });
  }
  for (auto& worker : workers) worker.join();

  Verdict total;
  int kills = 0;
  for (const auto& run : results) {
    EXPECT_EQ(run.trouble, "");
    kills += run.killed ? 1 : 0;
    total.add(run.verdict);
  }
  for (const auto& violation : total.violations) ADD_FAILURE() << violation;
  EXPECT_EQ(kills, runs) << "the crash point was not reached in every run";
  fmt::print(
      "{} point={} seed={} kills={}, keys judged={} (replayed {}, unknown {}), violations={}\n",
      kind, point, seed, kills, total.keys, total.replayed, total.unknown, total.violations.size());
}

INSTANTIATE_TEST_SUITE_P(Points, CrashPoints,
                         testing::Combine(testing::Values("sqlite", "embedded"),
                                          testing::ValuesIn(points)),
                         [](const auto& named) {
                           return fmt::format("{}_{}", std::get<0>(named.param),
                                              std::get<1>(named.param));
                         });

}  // namespace
}  // namespace idem::test
