#include "check/cases/cases.hpp"
#include "check/command.hpp"

#include <algorithm>
#include <array>
#include <thread>

namespace idem::check {
namespace {

using enum Severity;
using Millis = CaseRun::Millis;
using Clock = std::chrono::steady_clock;

// Until an API listens again.
constexpr Millis start_max{30'000};

// The command itself, not what it starts.
constexpr Millis command_max{60'000};

constexpr const char* no_command = "`restart` is not set.";

/// Restarts the API; why not.
std::optional<CaseEnd> restart_api(CaseRun& run) {
  if (run.api().is_dry()) return std::nullopt;
  const auto done = run_command(run.spec().restart, command_max, Output::dropped);
  if (!done) run.api().end_if_interrupted();
  if (!done) return CaseRun::skip(done.error() + ".");
  return std::nullopt;
}

/// An answer of what stands before the API, which is not there yet.
bool is_of_a_proxy(const CaseRun& run, const Answer& answer) {
  const auto& own = run.profile().in_flight;
  if (std::ranges::find(own, answer.status) != own.end()) return false;
  return answer.status == 502 || answer.status == 503 || answer.status == 504;
}

/// Sends the request until the API listens again; its answer.
CaseRun::Sent ask_after_restart(CaseRun& run, const Request& request) {
  const auto until = Clock::now() + start_max;
  for (;;) {
    auto sent = run.send_once(request, "its retry after the restart");
    const bool is_up = sent && !is_of_a_proxy(run, *sent);
    if (is_up || run.api().is_dry() || Clock::now() >= until) return sent;
    std::this_thread::sleep_for(Millis(100));
  }
}

CaseEnd restart(CaseRun& run) {
  if (run.spec().restart.empty()) return CaseRun::skip(no_command);
  auto first = send_first(run);
  if (!first) return first.error();
  const auto before = run.send(first->request, "its retry before the restart");
  if (!before) return CaseRun::skip("The retry received " + shown(before) + ".");
  if (auto failed = restart_api(run)) return *failed;
  const auto retry = ask_after_restart(run, first->request);
  if (auto often = ran_too_often(run, 1, "A request and its retry after a restart")) return *often;
  if (!retry || is_of_a_proxy(run, *retry))
    return CaseRun::skip("After the restart the retry received " + shown(retry) + ".");
  if (is_same_result(run, *before, *retry)) return CaseRun::pass();
  return CaseRun::fail("Before a restart a retry received " + shown(before) + ", and after it " +
                       shown(retry) + ".");
}

enum class Moment : std::uint8_t {
  after_the_effect,      ///< The operation has had its effect and still runs: the worst moment.
  within_the_operation,  ///< A quarter of a second after its start.
};

/// Waits for the moment; false: the request ended before.
bool wait_for(Moment moment, CaseRun& run, std::future<CaseRun::Sent>& running) {
  if (run.api().is_dry()) return true;
  if (moment == Moment::within_the_operation) {
    return running.wait_for(Millis(250)) != std::future_status::ready;
  }
  while (running.wait_for(Millis(50)) != std::future_status::ready) {
    if (run.executed_so_far().value_or(0) > 0) return !is_over(running);
  }
  return false;
}

CaseEnd judge_interrupted(CaseRun& run, const CaseRun::Sent& settled) {
  if (auto often = ran_too_often(run, 1, "A request that a restart interrupted, and its retry,")) {
    return *often;
  }
  // A failure says nothing about the operation.
  if (!settled || settled->status >= 500)
    return CaseRun::skip("After the restart the retry received " + shown(settled) + ".");
  if (!settled->is_success()) {
    return CaseRun::pass("The API refuses the retry: " + shown(settled) + ".");
  }
  if (run.has_effects() && !run.api().is_dry() && run.executed().value_or(1) == 0) {
    return CaseRun::fail("After a restart the retry received " + shown(settled) +
                         ", but the API did not execute the operation, according to `effects`.");
  }
  return CaseRun::pass();
}

/// None: the moment did not come.
std::optional<CaseEnd> restart_at(Moment moment, CaseRun& run) {
  const Request request = run.api().build(*slow_order(run));
  auto running = run.begin(request, "the first request, which is slow");
  const bool is_there = wait_for(moment, run, running);
  const auto failed = is_there ? restart_api(run) : std::nullopt;
  running.get();
  if (failed) return failed;
  if (!is_there) return std::nullopt;
  auto settled = ask_after_restart(run, request);
  if (settled && run.is_in_flight(*settled)) {
    settled = run.until_settled(request, "a later retry", run.spec().timeout);
  }
  // A service that the API called may go on without it.
  if (settled && !settled->is_success()) wait_for_left_operation(run);
  return judge_interrupted(run, settled);
}

CaseEnd restart_in_operation(CaseRun& run) {
  if (run.spec().restart.empty()) return CaseRun::skip(no_command);
  if (!slow_order(run)) return CaseRun::skip(no_slow);
  if (run.has_effects()) {
    CaseRun one(run.api());
    const auto end = restart_at(Moment::after_the_effect, one);
    if (end) {
      run.take_over(one);
      return *end;
    }
  }
  CaseRun one(run.api());
  const auto end = restart_at(Moment::within_the_operation, one);
  run.take_over(one);
  return end.value_or(CaseRun::skip(not_slow));
}

}  // namespace

std::span<const Case> restart_cases() {
  static constexpr std::array cases{
      Case{{.id = "restart.replay",
            .severity = money,
            .title = "Keys survive a restart",
            .reason = "Deployments happen while clients retry.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 2.3",
            .money = "After each restart every retry charges again.",
            .mend = "Store keys in the database of the operation."},
           &restart},
      Case{{.id = "restart.running",
            .severity = money,
            .title = "An operation that a restart interrupts executes at most once",
            .reason = "A process may end after the effect and before it has stored the answer.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 1",
            .money = "Each crash or deployment during a payment charges twice.",
            .mend = "Keep a reservation without a result, and find out its outcome; or commit "
                    "operation and answer in one transaction."},
           &restart_in_operation},
  };
  return cases;
}

}  // namespace idem::check
