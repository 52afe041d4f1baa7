#include "crash/async_judge.hpp"

#include <fmt/format.h>

#include <chrono>

namespace idem::test {
namespace {

/// A retry until it is neither accepted nor asked to come back.
Response final_answer(std::string_view address, const Request& request) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto answer = send_once(address, with(request, "Prefer", "wait=5"));
    const bool settled = answer.status == 201 || is_problem(answer, 409, "outcome_unknown");
    if (settled || std::chrono::steady_clock::now() > give_up) return answer;
  }
}

}  // namespace

void AsyncOutcome::add(const AsyncOutcome& other) {
  accepted += other.accepted;
  completed += other.completed;
  unknown += other.unknown;
  violations.insert(violations.end(), other.violations.begin(), other.violations.end());
}

void judge(const Traffic& traffic, std::string_view address, const Provider& provider,
           AsyncOutcome& outcome) {
  const auto violation = [&](const std::string& key, std::string text) {
    outcome.violations.push_back(key + ": " + std::move(text));
  };
  std::map<std::string, std::string> by_itself;
  for (const auto& [key, history] : traffic.keys()) {
    if (history.accepted.status != 202) continue;
    ++outcome.accepted;
    const auto state = state_when_ended(address, history.accepted)["state"].string;
    by_itself[key] = state;
    if (state != "completed" && state != "unknown") violation(key, "was accepted and is " + state);
  }
  for (const auto& [key, history] : traffic.keys()) {
    const auto answer = final_answer(address, history.request);
    const bool is_known = answer.status == 201;
    const int effects = provider.effects(key);
    if (effects > 1) violation(key, fmt::format("{} effects", effects));
    if (is_known && effects != 1) violation(key, fmt::format("a success, {} effects", effects));
    if (!is_known && !is_problem(answer, 409, "outcome_unknown")) {
      violation(key, fmt::format("neither a success nor unknown: {}", answer.raw));
    }
    const auto before = by_itself.find(key);
    if (before != by_itself.end() && is_known != (before->second == "completed")) {
      violation(key, "its retry gets another answer than its status");
    }
    ++(is_known ? outcome.completed : outcome.unknown);
  }
}

}  // namespace idem::test
