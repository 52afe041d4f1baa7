#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "crash/judge.hpp"
#include "support/async.hpp"
#include "support/shared_store.hpp"

// V19, V28, T18: the gateway dies by SIGKILL anywhere between accepting a request and settling it.
// What a client was told 202 about ends by itself, completed or, where it was cut off behind the
// mark of its dispatch, unknown; and nothing is ever charged twice.

namespace idem::test {
namespace {

constexpr std::array points{"parsed",
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
constexpr std::array<std::string_view, 3> shapes{"", "size=200000", "chunked,size=200000"};

struct Heard {
  Request request;
  Response accepted;  ///< The last 202; status 0 where none came.
};

/// What clients sent, and what they were told.
class Told {
 public:
  void sent(const std::string& key, const Request& request) {
    const std::lock_guard lock(mutex_);
    keys_.try_emplace(key, Heard{.request = request, .accepted = {}});
  }
  void heard(const std::string& key, Response answer) {
    const std::lock_guard lock(mutex_);
    if (answer.status == 202) keys_.at(key).accepted = std::move(answer);
  }
  const std::map<std::string, Heard>& keys() const { return keys_; }

 private:
  std::mutex mutex_;
  std::map<std::string, Heard> keys_;
};

struct Outcome {
  bool killed = false;
  int accepted = 0;
  int completed = 0;
  int unknown = 0;
  std::vector<std::string> violations;
};

void send_load(int client, unsigned seed, Gateway& gateway, Told& told) {
  std::mt19937 random(seed + static_cast<unsigned>(client) * 7919U);
  for (int i = 0; i < 8 && !gateway.process().ended(); ++i) {
    const bool shared = random() % 3 == 0;
    const auto key = shared ? fmt::format("shared-{}", i) : fmt::format("{}-{}", client, i);
    const auto shape = shapes[std::hash<std::string>{}(key) % shapes.size()];
    const auto request = charge(key, shape);
    told.sent(key, request);
    told.heard(key, send_once(gateway.address(), request));
  }
}

/// A retry until it is neither accepted nor told to come back.
Response final_answer(std::string_view address, const Request& request) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto answer = send_once(address, with(request, "Prefer", "wait=5"));
    const bool settled = answer.status == 201 || is_problem(answer, 409, "outcome_unknown");
    if (settled || std::chrono::steady_clock::now() > give_up) return answer;
  }
}

void judge(const Told& told, std::string_view address, const Provider& provider, Outcome& outcome) {
  const auto violation = [&](const std::string& key, std::string text) {
    outcome.violations.push_back(key + ": " + std::move(text));
  };
  std::map<std::string, std::string> by_itself;
  for (const auto& [key, heard] : told.keys()) {
    if (heard.accepted.status != 202) continue;
    ++outcome.accepted;
    const auto state = state_when_ended(address, heard.accepted)["state"].string;
    by_itself[key] = state;
    if (state != "completed" && state != "unknown") violation(key, "was accepted and is " + state);
  }
  for (const auto& [key, heard] : told.keys()) {
    const auto answer = final_answer(address, heard.request);
    const bool is_known = answer.status == 201;
    const int effects = provider.effects(key);
    if (effects > 1) violation(key, fmt::format("{} effects", effects));
    if (is_known && effects != 1) violation(key, fmt::format("a success, {} effects", effects));
    if (!is_known && !is_problem(answer, 409, "outcome_unknown")) {
      violation(key, fmt::format("neither a success nor unknown: {}", answer.raw));
    }
    const auto before = by_itself.find(key);
    if (before != by_itself.end() && is_known != (before->second == "completed")) {
      violation(key, "its retry hears something else than its status");
    }
    ++(is_known ? outcome.completed : outcome.unknown);
  }
}

Outcome crash_once(const std::string& kind, const std::string& point, unsigned seed) {
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
  Outcome outcome;
  if (!gateway.running()) {
    outcome.violations.push_back("did not start: " + gateway.process().output());
    return outcome;
  }
  Told told;
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] { send_load(i, seed, gateway, told); });
  }
  for (auto& client : clients) client.join();
  // What was accepted goes on behind its clients; if the point is not reached in it, it never is.
  gateway.process().signal(SIGTERM);
  outcome.killed = gateway.process().exit_code() == 128 + SIGKILL;
  gateway.restart();
  if (!gateway.running()) {
    outcome.violations.push_back("did not start again: " + gateway.process().output());
    return outcome;
  }
  judge(told, gateway.address(), provider, outcome);
  return outcome;
}

class AsyncCrashPoints : public testing::TestWithParam<std::tuple<std::string, const char*>> {};

TEST_P(AsyncCrashPoints, V19_V28_WhatWasAcceptedEndsAndNothingRunsTwice) {
  IDEM_NEED_PROGRAM("idem-crash");
  const auto& [kind, point] = GetParam();
  const int runs = number_from("IDEM_CRASH_RUNS", 3);
  const unsigned seed = seed_of_this_run();
  std::vector<Outcome> outcomes(static_cast<std::size_t>(runs));
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&, worker] {
      for (std::size_t i = worker; i < outcomes.size(); i += 2) {
        outcomes[i] = crash_once(kind, point, seed + static_cast<unsigned>(i));
      }
    });
  }
  for (auto& worker : workers) worker.join();
  Outcome total;
  int kills = 0;
  for (const auto& one : outcomes) {
    kills += one.killed ? 1 : 0;
    total.accepted += one.accepted;
    total.completed += one.completed;
    total.unknown += one.unknown;
    for (const auto& violation : one.violations) ADD_FAILURE() << violation;
  }
  EXPECT_EQ(kills, runs) << "the crash point was not reached in every run";
  EXPECT_GT(total.completed, 0);
  fmt::print("async {} point={} seed={} kills={}, accepted={}, completed={}, unknown={}\n", kind,
             point, seed, kills, total.accepted, total.completed, total.unknown);
}

INSTANTIATE_TEST_SUITE_P(Points, AsyncCrashPoints,
                         testing::Combine(testing::Values("sqlite", "postgres"),
                                          testing::ValuesIn(points)),
                         [](const auto& named) {
                           return std::get<0>(named.param) + "_" + std::get<1>(named.param);
                         });

}  // namespace
}  // namespace idem::test
