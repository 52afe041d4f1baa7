#include "check/cases/cases.hpp"

#include <array>
#include <thread>

namespace idem::check {
namespace {

using enum Severity;
using Millis = CaseRun::Millis;
using Clock = std::chrono::steady_clock;

CaseEnd refused_again(CaseRun& run) {
  if (!run.spec().refuses)
    return CaseRun::skip("The file says by no `refuses: {...}` what is refused.");
  Order order = run.api().order();
  order.changes = *run.spec().refuses;
  const Request request = run.api().build(order);
  const auto first = run.send(request, "a request that is refused");
  const auto retry = run.send(request, "its retry");
  if (!first || !retry) return CaseRun::skip("It got " + shown(first ? retry : first) + ".");
  if (!first->is_refusal()) return CaseRun::skip("It was not refused: " + shown(first) + ".");
  if (first->status == retry->status) return CaseRun::pass();
  return CaseRun::fail("A refused request got " + shown(first) + ", and its retry " + shown(retry) +
                       ".");
}

/// A refusal that is none for good.
bool asks_to_come_again(const Answer& answer) {
  return answer.find("Retry-After") != nullptr || answer.status == 425 || answer.status == 429 ||
         answer.status >= 500;
}

CaseEnd retry_of_failure(CaseRun& run) {
  if (!run.spec().fails)
    return CaseRun::skip("The file says by no `fails: {...}` how the work fails.");
  Order order = run.api().order();
  const Request whole = run.api().build(order);
  order.changes = *run.spec().fails;
  const auto failed = run.send(run.api().build(order), "a request whose work fails");
  if (!failed) return CaseRun::skip("The failing request got " + shown(failed) + ".");
  if (failed->status < 500 && !run.api().is_dry()) {
    return CaseRun::skip("The request did not fail: " + shown(failed) + ".");
  }
  const auto retry = run.send(whole, "its retry, which could succeed");
  if (!retry) return CaseRun::skip("The retry got " + shown(retry) + ".");
  if (auto often = ran_too_often(run, 1, "A failed request and its retry")) return *often;
  const bool is_replay = is_same_answer(*failed, *retry);
  using Errors = Profile::Errors;
  if (run.profile().server_errors == Errors::replayed) {
    if (is_replay) return CaseRun::pass();
    return CaseRun::fail("A failed request got " + shown(failed) + ", and its retry " +
                         shown(retry) + "; the profile stores failures.");
  }
  if (retry->is_success()) {
    const auto again = run.send(whole, "once more");
    if (auto often = ran_too_often(run, 1, "A failed request and its retries")) return *often;
    if (again && !is_same_result(run, *retry, *again)) {
      return CaseRun::fail("Behind a failure the retry got " + shown(retry) +
                           ", and the next one " + shown(again) + ".");
    }
    return CaseRun::pass();
  }
  if (run.profile().server_errors == Errors::any && !is_replay && !asks_to_come_again(*retry)) {
    return CaseRun::pass("The API runs it no more, and says so: " + shown(retry) + ".");
  }
  return CaseRun::fail("The work failed with " + shown(failed) +
                       " before it had an effect, and no retry can succeed: " + shown(retry) + ".");
}

CaseEnd expiry(CaseRun& run) {
  if (!run.spec().retention) return CaseRun::skip("The file names no `retention`.");
  if (*run.spec().retention > std::chrono::minutes(2)) {
    return CaseRun::skip("The retention is longer than a run may wait: two minutes.");
  }
  const auto began = Clock::now();
  auto first = send_first(run);
  if (!first) return first.error();
  if (!run.api().is_dry()) std::this_thread::sleep_until(began + *run.spec().retention * 7 / 10);
  const auto sent_at = Clock::now();
  const auto within = run.send(first->request, "its retry within the retention");
  const bool is_within = Clock::now() < began + *run.spec().retention;
  if (auto often = ran_too_often(run, 1, "Within the retention, a request and its retry")) {
    if (is_within) return *often;
  }
  if (!is_within) return CaseRun::skip("This machine was too slow to ask within the retention.");
  if (!within) return CaseRun::skip("The retry got " + shown(within) + ".");
  if (!is_same_answer(first->answer, *within)) {
    return CaseRun::fail(
        "Within the retention, after " +
        std::to_string(std::chrono::duration_cast<Millis>(sent_at - began).count()) +
        " ms, the retry got " + shown(within) + " instead of " + shown(first->answer) + ".");
  }
  if (!run.api().is_dry()) {
    std::this_thread::sleep_until(Clock::now() + *run.spec().retention + Millis(200));
  }
  const auto after = run.send(first->request, "its retry behind the retention");
  if (!after) return CaseRun::skip("Behind the retention the retry got " + shown(after) + ".");
  if (after->status >= 500) {
    return CaseRun::fail("Behind the retention the retry got " + shown(after) + ".");
  }
  return CaseRun::pass(after->is_success() ? "Behind it, the key runs as new or is still replayed."
                                           : "Behind it, the key is refused.");
}

}  // namespace

std::span<const Case> lifetime_cases() {
  static constexpr std::array cases{
      Case{{.id = "error.replay",
            .severity = correctness,
            .title = "A refusal stays a refusal",
            .reason = "The same request is as wrong as before.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 2.6",
            .money = "A refused payment that runs at its retry surprises both sides.",
            .mend = "Answer a repeated request as the first one."},
           &refused_again},
      Case{{.id = "error.retry",
            .severity = correctness,
            .title = "A failure without an effect can be repeated",
            .reason =
                "A stored failure makes the key useless; a second run behind an effect pays twice.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 2.6",
            .money = "The client takes a new key, and nothing protects the two from each other.",
            .mend = "Store a failure only if the work has had an effect, or may have had one."},
           &retry_of_failure},
      Case{{.id = "expiry",
            .severity = money,
            .title = "A key holds for as long as promised",
            .reason = "Clients plan their retries by the promise.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 2.3",
            .money = "A retry within the promised time runs again.",
            .mend = "Count the retention from the end of the work, and never less than promised."},
           &expiry},
  };
  return cases;
}

}  // namespace idem::check
