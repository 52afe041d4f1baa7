#include "check/cases/cases.hpp"

#include <array>
#include <thread>

namespace idem::check {
namespace {

using enum Severity;
using Millis = CaseRun::Millis;
using Clock = std::chrono::steady_clock;

// For how long an API may take to listen again.
constexpr Millis start_max{30'000};

constexpr const char* no_command = "The file names no `restart` command.";

/// Restarts the API; why not.
std::optional<CaseEnd> restart_api(CaseRun& run) {
  if (run.api().is_dry()) return std::nullopt;
  if (const auto done = run_command(run.spec().restart); !done)
    return CaseRun::skip(done.error() + ".");
  return std::nullopt;
}

/// Sends the request until the API listens again; its answer.
CaseRun::Sent ask_after_restart(CaseRun& run, const Request& request) {
  const auto until = Clock::now() + start_max;
  for (;;) {
    auto sent = run.send(request, "its retry after the restart");
    if (sent || Clock::now() >= until) return sent;
    std::this_thread::sleep_for(Millis(100));
  }
}

CaseEnd restart(CaseRun& run) {
  if (run.spec().restart.empty()) return CaseRun::skip(no_command);
  auto first = send_first(run);
  if (!first) return first.error();
  const auto before = run.send(first->request, "its retry before the restart");
  if (!before) return CaseRun::skip("The retry got " + shown(before) + ".");
  if (auto failed = restart_api(run)) return *failed;
  const auto retry = ask_after_restart(run, first->request);
  if (auto often = ran_too_often(run, 1, "A request and its retry after a restart")) return *often;
  if (!retry) return CaseRun::skip("After the restart nobody answers: " + shown(retry) + ".");
  if (is_same_answer(*before, *retry)) return CaseRun::pass();
  return CaseRun::fail("Before a restart a retry got " + shown(before) + ", and after it " +
                       shown(retry) + ".");
}

enum class Moment : std::uint8_t {
  after_the_effect,  ///< The work has had its effect, and still runs: a crash loses most here.
  within_the_work,   ///< A quarter of a second after its start.
};

/// Waits for the moment; false: the request was over before.
bool wait_for(Moment moment, CaseRun& run, std::future<CaseRun::Sent>& running) {
  if (run.api().is_dry()) return true;
  if (moment == Moment::within_the_work) {
    return running.wait_for(Millis(250)) != std::future_status::ready;
  }
  while (running.wait_for(Millis(20)) != std::future_status::ready) {
    if (run.executed().value_or(0) > 0) return !is_over(running);
  }
  return false;
}

CaseEnd judge_interrupted(CaseRun& run, const CaseRun::Sent& settled) {
  if (auto often = ran_too_often(run, 1, "A request that a restart cut off, and its retry,")) {
    return *often;
  }
  if (!settled) return CaseRun::skip("After the restart nobody answers: " + shown(settled) + ".");
  if (!settled->is_success()) {
    return CaseRun::pass("The API does not run it again, and says so: " + shown(settled) + ".");
  }
  if (run.has_books() && !run.api().is_dry() && run.executed().value_or(1) == 0) {
    return CaseRun::fail("After a restart the retry got " + shown(settled) +
                         ", and the work did not run, by the API's own books.");
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
  // What stood behind the API may go on without it.
  if (settled && !settled->is_success()) wait_for_left_work(run);
  return judge_interrupted(run, settled);
}

CaseEnd restart_in_work(CaseRun& run) {
  if (run.spec().restart.empty()) return CaseRun::skip(no_command);
  if (!slow_order(run)) return CaseRun::skip(no_slow);
  if (run.has_books()) {
    CaseRun one(run.api());
    const auto end = restart_at(Moment::after_the_effect, one);
    if (end) {
      run.take_over(one);
      return *end;
    }
  }
  CaseRun one(run.api());
  const auto end = restart_at(Moment::within_the_work, one);
  run.take_over(one);
  return end.value_or(CaseRun::skip("The first request was over within 250 ms: it is not slow."));
}

}  // namespace

std::span<const Case> restart_cases() {
  static constexpr std::array cases{
      Case{{.id = "restart.replay",
            .severity = money,
            .title = "A restart forgets nothing",
            .reason = "Deployments happen while clients retry.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 2.3",
            .money = "Each restart makes all retries of its time run again.",
            .mend = "Keep keys where the work's own rows are."},
           &restart},
      Case{{.id = "restart.running",
            .severity = money,
            .title = "A restart within the work pays at most once",
            .reason = "A process ends after the effect and before its answer is stored.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 1",
            .money = "Each crash or deployment within a payment pays it twice.",
            .mend = "Keep a reservation without an end, and find out what came of it; or commit "
                    "work and answer in one transaction."},
           &restart_in_work},
  };
  return cases;
}

}  // namespace idem::check
