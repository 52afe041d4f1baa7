#include "check/cases/cases.hpp"

#include <array>

namespace idem::check {
namespace {

using enum Severity;
using Millis = CaseRun::Millis;
using Clock = std::chrono::steady_clock;

CaseEnd refused_again(CaseRun& run) {
  if (!run.spec().refuses) return CaseRun::skip("`refuses` is not set.");
  Order order = run.api().order();
  order.changes = *run.spec().refuses;
  const Request request = run.api().build(order);
  const auto first = run.send(request, "a request that is refused");
  const auto retry = run.send(request, "its retry");
  if (!first || !retry)
    return CaseRun::skip("A request received " + shown(first ? retry : first) + ".");
  if (!first->is_refusal())
    return CaseRun::skip("The API did not refuse the request: " + shown(first) + ".");
  if (first->status == retry->status) return CaseRun::pass();
  return CaseRun::fail("A refused request received " + shown(first) + ", and its retry " +
                       shown(retry) + ".");
}

/// A refusal for the moment.
bool asks_to_retry(const Answer& answer) {
  return answer.find("Retry-After") != nullptr || answer.status == 425 || answer.status == 429 ||
         answer.status >= 500;
}

CaseEnd retry_of_failure(CaseRun& run) {
  if (!run.spec().fails) return CaseRun::skip("`fails` is not set.");
  Order order = run.api().order();
  const Request whole = run.api().build(order);
  order.changes = *run.spec().fails;
  const auto failed = run.send_once(run.api().build(order), "a request that fails");
  if (!failed) return CaseRun::skip("The failing request received " + shown(failed) + ".");
  if (failed->status < 500 && !run.api().is_dry()) {
    return CaseRun::skip("The request did not fail: " + shown(failed) + ".");
  }
  const auto retry = run.send_once(whole, "its retry, which can succeed");
  if (!retry || retry->status == 429)
    return CaseRun::skip("The retry received " + shown(retry) + ".");
  if (auto often = ran_too_often(run, 1, "A failed request and its retry")) return *often;
  const bool is_replay = is_same_answer(*failed, *retry);
  using Errors = Profile::Errors;
  if (run.profile().server_errors == Errors::replayed) {
    if (is_replay) return CaseRun::pass();
    return CaseRun::fail("A failed request received " + shown(failed) + ", and its retry " +
                         shown(retry) + "; the profile requires that failures are replayed.");
  }
  if (retry->is_success()) {
    const auto again = run.send(whole, "another retry");
    if (auto often = ran_too_often(run, 1, "A failed request and its retries")) return *often;
    if (again && !is_same_result(run, *retry, *again)) {
      return CaseRun::fail("After a failure the retry received " + shown(retry) +
                           ", and the next retry " + shown(again) + ".");
    }
    return CaseRun::pass();
  }
  if (run.profile().server_errors == Errors::any && !is_replay && !asks_to_retry(*retry)) {
    return CaseRun::pass("The API refuses the retry for good: " + shown(retry) + ".");
  }
  return CaseRun::fail("A request failed without an effect (" + shown(failed) +
                       "), and its retry cannot succeed: it received " + shown(retry) + ".");
}

CaseEnd expiry(CaseRun& run) {
  if (!run.spec().retention) return CaseRun::skip("`retention` is not set.");
  if (*run.spec().retention > std::chrono::minutes(2)) {
    return CaseRun::skip("`retention` is longer than the 2 minutes that a run waits.");
  }
  const auto began = Clock::now();
  auto first = send_first(run);
  if (!first) return first.error();
  if (!run.api().is_dry()) run.api().wait_until(began + *run.spec().retention * 7 / 10);
  const auto sent_at = Clock::now();
  const auto within = run.send(first->request, "its retry within the retention");
  const bool is_within = Clock::now() < began + *run.spec().retention;
  if (auto often = ran_too_often(run, 1, "Within the retention, a request and its retry")) {
    if (is_within) return *often;
  }
  if (!is_within)
    return CaseRun::skip("This machine was too slow to send the retry within the retention.");
  if (!within) return CaseRun::skip("The retry received " + shown(within) + ".");
  if (!is_same_result(run, first->answer, *within)) {
    return CaseRun::fail(
        "Within the retention, after " +
        std::to_string(std::chrono::duration_cast<Millis>(sent_at - began).count()) +
        " ms, the retry received " + shown(within) + " instead of " + shown(first->answer) + ".");
  }
  if (!run.api().is_dry()) {
    run.api().wait_until(Clock::now() + *run.spec().retention + Millis(200));
  }
  const auto after = run.send(first->request, "its retry after the retention");
  if (!after) return CaseRun::skip("After the retention the retry received " + shown(after) + ".");
  if (after->status >= 500) {
    return CaseRun::fail("After the retention the retry received " + shown(after) + ".");
  }
  return CaseRun::pass(
      after->is_success() ? "After the retention the API executes the key as new, or still replays."
                          : "After the retention the API refuses the key.");
}

}  // namespace

std::span<const Case> lifetime_cases() {
  static constexpr std::array cases{
      Case{{.id = "error.replay",
            .severity = correctness,
            .title = "A retry of a refused request is refused",
            .reason = "The same request is as wrong as before.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 2.6",
            .money = "The API executes a payment that it has refused.",
            .mend = "Answer a retry as the first request."},
           &refused_again},
      Case{
          {.id = "error.retry",
           .severity = correctness,
           .title = "A request that failed without an effect can be retried",
           .reason = "A stored failure makes the key useless; executing again after an effect "
                     "charges twice.",
           .source = "draft-ietf-httpapi-idempotency-key-header-07, section 2.6",
           .money = "The client sends a new key, and nothing relates the two requests.",
           .mend = "Store a failure only if the operation has had an effect, or may have had one."},
          &retry_of_failure},
      Case{{.id = "expiry",
            .severity = money,
            .title = "The API keeps a key for the promised time",
            .reason = "Clients plan their retries by the promise.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 2.3",
            .money = "A retry within the promised time charges again.",
            .mend = "Count the retention from the end of the operation, and never expire earlier."},
           &expiry},
  };
  return cases;
}

}  // namespace idem::check
