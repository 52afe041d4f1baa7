#include "crash/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "support/back_off.hpp"

namespace idem::test {
namespace {

constexpr int attempts_max = 1500;

Response ask_until_definite(std::string_view address, const Request& request) {
  for (int attempt = 1;; ++attempt) {
    auto answer = send_once(address, request);
    if (is_definite(answer) || attempt == attempts_max) return answer;
    back_off();
  }
}

}  // namespace

void Verdict::add(const Verdict& other) {
  keys += other.keys;
  replayed += other.replayed;
  unknown += other.unknown;
  violations.insert(violations.end(), other.violations.begin(), other.violations.end());
}

bool is_definite(const Response& answer) {
  if (answer.status == 0 || answer.status == 503) return false;
  return answer.status != 409 || json_text(answer.body, "code") != "in_progress";
}

void Judge::sent(std::string_view key, const Request& request) {
  const std::lock_guard lock(mutex_);
  keys_.try_emplace(std::string(key), PerKey{.request = request, .success_bodies = {}});
}

void Judge::answered(std::string_view key, const Response& answer) {
  if (answer.status != 201) return;
  const std::lock_guard lock(mutex_);
  const auto entry = keys_.find(key);
  if (entry != keys_.end()) entry->second.success_bodies.insert(answer.body);
}

Verdict Judge::conclude(std::string_view address, const Provider& provider) {
  const std::lock_guard lock(mutex_);
  Verdict verdict;
  std::map<std::string, Response> finals;
  for (auto& [key, entry] : keys_) {
    const auto answer = ask_until_definite(address, entry.request);
    if (answer.status == 201) entry.success_bodies.insert(answer.body);
    if (!is_definite(answer)) {
      verdict.violations.push_back(
          fmt::format("{}: no definite answer, last {} {}", key, answer.status, answer.body));
    }
  }
  const auto ledger = provider.ledger();  // Read last, so that it holds whatever a retry caused.
  for (const auto& [key, entry] : keys_) {
    const auto counts = ledger.keys.find(key);
    judge_key(key, entry, address, counts == ledger.keys.end() ? 0 : counts->second.effects,
              verdict);
  }
  return verdict;
}

void Judge::judge_key(const std::string& key, const PerKey& entry, std::string_view address,
                      int effects, Verdict& verdict) {
  const auto violation = [&](std::string text) {
    verdict.violations.push_back(key + ": " + std::move(text));
  };
  ++verdict.keys;
  if (effects > 1) violation(fmt::format("{} effects", effects));
  if (entry.success_bodies.size() > 1) violation("two different successes");
  const auto last = send_once(address, entry.request);
  if (!entry.success_bodies.empty()) {
    if (effects != 1) violation(fmt::format("a client got success, effects {}", effects));
    const bool same = last.status == 201 && last.body == *entry.success_bodies.begin() &&
                      last.get("Idempotent-Replayed") == "true";
    if (!same) violation(fmt::format("a success is not replayed: {} {}", last.status, last.body));
    verdict.replayed += same ? 1 : 0;
    return;
  }
  // The owner may have settled a record since that was unknown at the first question (§3).
  const bool is_settled_late =
      last.status == 201 && last.get("Idempotent-Replayed") == "true" && effects == 1;
  if (is_problem(last, 409, "outcome_unknown")) {
    ++verdict.unknown;
  } else if (is_settled_late) {
    ++verdict.replayed;
  } else {
    violation(fmt::format("neither a success nor unknown: {} {}", last.status, last.body));
  }
}

std::vector<std::string> short_lease() { return {"--lease", "2s", "--upstream-timeout", "1s"}; }

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

unsigned seed_of_this_run() {
  static const auto seed = static_cast<unsigned>(
      number_from("IDEM_SEED", static_cast<int>(std::random_device{}() >> 1U)));
  return seed;
}

}  // namespace idem::test
