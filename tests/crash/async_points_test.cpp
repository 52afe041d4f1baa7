#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <random>
#include <thread>

#include "crash/async_judge.hpp"
#include "support/shared_store.hpp"

// V19, V28, T18: the gateway dies by SIGKILL anywhere between accepting a request and settling it.
// A request that was answered 202 ends by itself, completed or, where it was cut off behind the
// mark of its dispatch, unknown; and nothing is ever charged twice.

namespace idem::test {
namespace {

constexpr std::array async_points{"parsed",
                                  "fingerprinted",
                                  "reserve_before_commit",
                                  "reserve_after_commit",
                                  "claimed",
                                  "dispatch_before_first_byte",
                                  "dispatch_mid_request",
                                  "dispatch_sent",
                                  "response_head",
                                  "response_mid_body",
                                  "settle_before_commit",
                                  "settle_after_commit",
                                  "answer_before_first_byte",
                                  "answer_mid"};

void send_async_load(int client, unsigned seed, Gateway& gateway, Traffic& traffic) {
  std::mt19937 random(seed + static_cast<unsigned>(client) * 7919U);
  // Long enough for four commits of settlements, each of which may have many; the kill ends it.
  for (int i = 0; i < 40 && !gateway.process().ended(); ++i) {
    const bool shared = random() % 3 == 0;
    const auto key = shared ? fmt::format("shared-{}", i) : fmt::format("{}-{}", client, i);
    const auto shape = shapes[std::hash<std::string>{}(key) % shapes.size()];
    const auto request = charge(key, shape);
    traffic.sent(key, request);
    traffic.answered(key, send_once(gateway.address(), request));
  }
}

AsyncOutcome crash_async_once(const std::string& kind, const std::string& point, unsigned seed) {
  std::mt19937 random(seed);
  const TempDir dir;
  std::optional<SharedStoreUrl> shared;
  if (kind != "sqlite") shared.emplace(kind);
  const Provider provider;
  auto flags = short_lease();
  flags.insert(flags.end(), {"--mode", "async"});
  Gateway gateway({.upstream = provider.address(),
                   .store = shared ? std::filesystem::path() : dir.path() / "idem.db",
                   .store_url = shared ? shared->url() : "",
                   .flags = std::move(flags),
                   .environment = {fmt::format("IDEM_CRASH_AT={}:{}", point, 1 + random() % 4)},
                   .program = "idem-crash"});
  AsyncOutcome outcome;
  if (!gateway.running()) {
    outcome.violations.push_back("did not start: " + gateway.process().output());
    return outcome;
  }
  Traffic traffic;
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] { send_async_load(i, seed, gateway, traffic); });
  }
  for (auto& client : clients) client.join();
  // Accepted requests go on behind their clients; if the point is not reached in it, it never is.
  gateway.process().signal(SIGTERM);
  outcome.killed = gateway.process().exit_code() == 128 + SIGKILL;
  gateway.restart();
  if (!gateway.running()) {
    outcome.violations.push_back("did not start again: " + gateway.process().output());
    return outcome;
  }
  judge(traffic, gateway.address(), provider, outcome);
  return outcome;
}

class AsyncCrashPoints : public testing::TestWithParam<std::tuple<std::string, const char*>> {};

TEST_P(AsyncCrashPoints, V19_V28_every_accepted_request_ends_and_nothing_runs_twice) {
  IDEM_NEED_PROGRAM("idem-crash");
  const auto& [kind, point] = GetParam();
  const int runs = number_from("IDEM_CRASH_RUNS", 2);
  const unsigned seed = seed_of_this_run();
  std::vector<AsyncOutcome> outcomes(static_cast<std::size_t>(runs));
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&, worker] {
      for (std::size_t i = worker; i < outcomes.size(); i += 2) {
        outcomes[i] = crash_async_once(kind, point, seed + static_cast<unsigned>(i));
      }
    });
  }
  for (auto& worker : workers) worker.join();
  AsyncOutcome total;
  int kills = 0;
  for (const auto& one : outcomes) {
    kills += one.killed ? 1 : 0;
    total.add(one);
  }
  for (const auto& violation : total.violations) ADD_FAILURE() << violation;
  EXPECT_EQ(kills, runs) << "the crash point was not reached in every run";
  EXPECT_GT(total.completed, 0);
  fmt::print("async {} point={} seed={} kills={}, accepted={}, completed={}, unknown={}\n", kind,
             point, seed, kills, total.accepted, total.completed, total.unknown);
}

INSTANTIATE_TEST_SUITE_P(Points, AsyncCrashPoints,
                         testing::Combine(testing::Values("sqlite", "postgres"),
                                          testing::ValuesIn(async_points)),
                         [](const auto& named) {
                           return std::get<0>(named.param) + "_" + std::get<1>(named.param);
                         });

}  // namespace
}  // namespace idem::test
