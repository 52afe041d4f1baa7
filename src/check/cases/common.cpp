#include "check/cases/cases.hpp"

#include <algorithm>
#include <cctype>
#include <thread>

namespace idem::check {

std::expected<First, CaseEnd> send_first(CaseRun& run, Order order) {
  First first{.order = std::move(order), .request = {}, .answer = {}};
  first.request = run.api().build(first.order);
  auto sent = run.send(first.request, "the first request");
  if (!sent)
    return std::unexpected(CaseRun::skip("The first request received " + shown(sent) + "."));
  if (!sent->is_success()) {
    return std::unexpected(
        CaseRun::skip("The API did not accept the first request: " + shown(sent) + "."));
  }
  first.answer = std::move(*sent);
  return first;
}

std::expected<First, CaseEnd> send_first(CaseRun& run) {
  return send_first(run, run.api().order());
}

std::optional<CaseEnd> ran_too_often(CaseRun& run, std::int64_t most, const std::string& story) {
  const auto executed = run.executed();
  if (!executed)
    return CaseRun::skip("The number of executions is unknown: " + executed.error() + ".");
  if (*executed <= most) return std::nullopt;
  const std::string by = run.has_effects() ? "`effects`" : "the different answers";
  const std::string times = *executed == 1   ? "once"
                            : *executed == 2 ? "twice"
                                             : std::to_string(*executed) + " times";
  auto end =
      CaseRun::fail(story + " executed the operation " + times + ", according to " + by + ".");
  // That money moved twice needs no second time.
  end.is_certain = run.counts_exactly();
  return end;
}

std::optional<Order> slow_order(CaseRun& run) {
  if (!run.spec().slow) return std::nullopt;
  Order order = run.api().order();
  order.changes = *run.spec().slow;
  return order;
}

bool is_over(std::future<CaseRun::Sent>& running) {
  return running.wait_for(CaseRun::Millis(0)) == std::future_status::ready;
}

void wait_for_left_operation(CaseRun& run) {
  if (!run.has_effects() || run.api().is_dry()) return;
  const auto until = std::chrono::steady_clock::now() + run.spec().timeout;
  while (run.executed_so_far().value_or(1) < 1 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(CaseRun::Millis(50));
  }
}

std::optional<CaseEnd> too_few_met(const std::vector<CaseRun::Sent>& all) {
  const auto met = static_cast<std::size_t>(std::ranges::count_if(
      all, [](const auto& sent) { return sent.has_value() && sent->status != 429; }));
  const std::size_t needed = std::max<std::size_t>(2, all.size() / 2);
  if (met >= needed) return std::nullopt;
  const auto other = std::ranges::find_if(
      all, [](const auto& sent) { return !sent.has_value() || sent->status == 429; });
  return CaseRun::skip("Of " + std::to_string(all.size()) + " concurrent requests, " +
                       std::to_string(met) + " received an answer, and the case needs " +
                       std::to_string(needed) + "; another received " + shown(*other) + ".");
}

std::string label_of(std::string what) {
  what.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(what.front())));
  return what;
}

bool is_one_of(int status, const std::vector<int>& wanted) {
  if (wanted.empty()) return status >= 400 && status < 500;
  return std::ranges::find(wanted, status) != wanted.end();
}

std::string statuses(const std::vector<int>& wanted) {
  if (wanted.empty()) return "a 4xx";
  std::string text;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    text += i == 0 ? "" : i + 1 == wanted.size() ? " or " : ", ";
    text += std::to_string(wanted[i]);
  }
  return text;
}

std::optional<CaseEnd> judge_refusal(CaseRun& run, const Answer& first, const CaseRun::Sent& other,
                                     const std::vector<int>& wanted, const std::string& what) {
  auto often = ran_too_often(run, 1, what);
  if (often && often->outcome == Outcome::fail) return often;
  if (!other) return CaseRun::skip(what + " received " + shown(other) + ".");
  if (other->status == 429 && !is_one_of(429, wanted)) {
    return CaseRun::skip("The API limits the rate: " + shown(other) + ".");
  }
  if (other->is_success()) {
    const std::string accepted = "The API accepted " + label_of(what) + ": ";
    const bool is_first = is_same_result(run, first, *other);
    return CaseRun::fail(
        (is_first ? what + " received the answer to the first request: " : accepted) +
        shown(other) + ".");
  }
  if (other->status >= 500) {
    return CaseRun::fail(what + " received " + shown(other) + ", a failure that clients retry.");
  }
  if (!is_one_of(other->status, wanted)) {
    return CaseRun::fail(what + " received " + shown(other) + "; the profile requires " +
                         statuses(wanted) + ".");
  }
  // It was refused; only `effects` know whether it was executed all the same.
  return run.has_effects() ? often : std::nullopt;
}

std::span<const Case> all_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    for (const auto& some : {replay_cases(), misuse_cases(), race_cases(), loss_cases(),
                             key_cases(), lifetime_cases(), restart_cases()}) {
      cases.insert(cases.end(), some.begin(), some.end());
    }
    return cases;
  }();
  return all;
}

}  // namespace idem::check
