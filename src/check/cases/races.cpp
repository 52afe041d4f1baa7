#include "check/cases/cases.hpp"

#include <algorithm>
#include <array>
#include <thread>

namespace idem::check {
namespace {

using enum Severity;
using Millis = CaseRun::Millis;
using Clock = std::chrono::steady_clock;

constexpr std::string_view draft_race = "draft-ietf-httpapi-idempotency-key-header-07, section 2.6";
constexpr std::string_view money_of_race =
    "A client that retries before it has the first answer, or two copies of a job, pay twice.";
constexpr std::string_view mend_race =
    "Reserve the key in one atomic step (an INSERT with a unique index) before executing the "
    "operation.";

/// Fails where two successes have different results; `settled` is the last answer. An answer
/// without a result is judged by `inflight.retry`.
std::optional<CaseEnd> judge_answers(const CaseRun& run, const std::vector<CaseRun::Sent>& all,
                                     const Answer& settled, const std::string& story) {
  // Duplicates that receive no result are no second execution: `ambiguous.success` judges them.
  if (run.resource_of(settled).empty()) return std::nullopt;
  for (const auto& sent : all) {
    if (!sent || !sent->is_success() || is_same_result(run, *sent, settled)) continue;
    // Without an id, different bodies are the business of `replay.identical`.
    if (run.resource_of(*sent).empty()) continue;
    return CaseRun::fail("Of " + story + ", one received " + shown(sent) +
                         "; a later retry received " + shown(settled) + ".");
  }
  return std::nullopt;
}

CaseEnd race_of(CaseRun& run, std::size_t callers) {
  const Request request = run.api().build(run.api().order());
  const std::vector<Request> requests(callers, request);
  const std::string story = std::to_string(callers) + " concurrent copies of one request";
  const auto all = run.race(requests, "a copy");
  const auto few = run.api().is_dry() ? std::nullopt : too_few_met(all);
  const auto settled = run.until_settled(request, "a retry afterwards", run.spec().timeout);
  if (auto often = ran_too_often(run, 1, story)) return *often;
  if (few) return *few;
  if (!settled) return CaseRun::skip("The retry afterwards received " + shown(settled) + ".");
  if (settled->is_success()) {
    if (auto bad = judge_answers(run, all, *settled, story)) return *bad;
    return CaseRun::pass();
  }
  const auto won =
      std::ranges::find_if(all, [](const auto& sent) { return sent && sent->is_success(); });
  if (won != all.end()) {
    return CaseRun::fail("Of " + story + ", one received " + shown(*won) +
                         "; a later retry received " + shown(settled) + ".");
  }
  return CaseRun::skip("The API did not accept the request: " + shown(settled) + ".");
}

/// Whether two requests meet within a window of milliseconds is chance: there are several rounds.
CaseEnd races_of(CaseRun& run, std::size_t callers, int rounds) {
  CaseEnd end;
  for (int round = 0; round < rounds; ++round) {
    CaseRun one(run.api());
    end = race_of(one, callers);
    run.take_over(one);
    if (end.outcome != Outcome::pass) return end;
  }
  return end;
}

CaseEnd two(CaseRun& run) { return races_of(run, 2, 5); }
CaseEnd ten(CaseRun& run) { return races_of(run, 10, 3); }
CaseEnd many(CaseRun& run) { return race_of(run, 100); }

CaseEnd bodies(CaseRun& run) {
  Order order = run.api().order();
  std::vector<Request> requests;
  const std::int64_t amount = std::stoll(order.amount);
  for (int i = 0; i < 10; ++i) {
    order.amount = std::to_string(amount + i);
    requests.push_back(run.api().build(order));
  }
  if (requests[0].body == requests[1].body) return CaseRun::skip(no_amount);
  const auto all = run.race(requests, "the same key with its own amount");
  if (auto often =
          ran_too_often(run, 1, "10 concurrent requests with one key and different amounts"))
    return *often;
  const auto few = run.api().is_dry() ? std::nullopt : too_few_met(all);
  return few.value_or(CaseRun::pass());
}

/// Sends another request while the first runs; none: the first had ended before.
std::optional<CaseRun::Sent> ask_meanwhile(CaseRun& run, std::future<CaseRun::Sent>& running,
                                           const Request& other, const std::string& what) {
  std::this_thread::sleep_for(Millis(250));
  const bool was_over = is_over(running);
  auto sent = run.send_once(other, what);
  if (run.api().is_dry()) return sent;
  if (was_over) return std::nullopt;
  return sent;
}

CaseEnd in_flight(CaseRun& run) {
  const auto order = slow_order(run);
  if (!order) return CaseRun::skip(no_slow);
  const Request request = run.api().build(*order);
  auto running = run.begin(request, "the first request, which is slow");
  const auto meanwhile = ask_meanwhile(run, running, request, "its retry while it runs");
  const auto first = running.get();
  if (!meanwhile) return CaseRun::skip(not_slow);
  if (!first || !first->is_success()) {
    return CaseRun::skip("The API did not accept the slow request: " + shown(first) + ".");
  }
  if (!*meanwhile) return CaseRun::skip("The retry received " + shown(*meanwhile) + ".");
  const Answer& answer = **meanwhile;
  if (answer.is_success()) {
    if (is_same_result(run, *first, answer))
      return CaseRun::pass("The retry waited for the first request.");
    const auto executed = run.executed();
    if (executed && *executed > 1)
      return CaseRun::skip("The retry executed the operation: see `race.two`.");
    const bool says_it_runs =
        answer.status == 202 && run.resource_of(answer).empty() && run.profile().in_flight.empty();
    if (says_it_runs) return CaseRun::pass("The API says that the first request still runs.");
    const bool differs_by_body = run.api().difference() != Difference::id &&
                                 answer.status == first->status && !answer.body.empty();
    if (differs_by_body) return CaseRun::skip(no_difference);
    return CaseRun::fail("A retry received " + shown(*meanwhile) +
                         " while the first request ran, and the first request received " +
                         shown(first) + ".");
  }
  if (answer.status == 429 && !is_one_of(429, run.profile().in_flight)) {
    return CaseRun::skip("The API limits the rate: " + shown(*meanwhile) + ".");
  }
  if (answer.status >= 500 && answer.status != 503) {
    return CaseRun::fail("A retry received " + shown(*meanwhile) + " while the first request ran.");
  }
  if (!run.profile().in_flight.empty() && !is_one_of(answer.status, run.profile().in_flight)) {
    return CaseRun::fail("A retry received " + shown(*meanwhile) +
                         " while the first request ran; the profile requires " +
                         statuses(run.profile().in_flight) + ".");
  }
  return CaseRun::pass();
}

CaseEnd in_flight_misuse(CaseRun& run) {
  const auto order = slow_order(run);
  if (!order) return CaseRun::skip(no_slow);
  Order other = *order;
  other.amount = std::to_string(std::stoll(order->amount) + 1);
  auto running = run.begin(run.api().build(*order), "the first request, which is slow");
  const auto meanwhile = ask_meanwhile(run, running, run.api().build(other),
                                       "the same key with another amount while it runs");
  const auto first = running.get();
  if (!meanwhile) return CaseRun::skip(not_slow);
  if (!first || !first->is_success()) {
    return CaseRun::skip("The API did not accept the slow request: " + shown(first) + ".");
  }
  if (*meanwhile && is_one_of((*meanwhile)->status, run.profile().in_flight)) {
    return CaseRun::pass("The API refuses it because the first request runs.");
  }
  const auto bad = judge_refusal(run, *first, *meanwhile, run.profile().misuse,
                                 "The same key with another amount, while the first request ran,");
  return bad.value_or(CaseRun::pass());
}

CaseEnd slow_first(CaseRun& run) {
  const auto order = slow_order(run);
  if (!order) return CaseRun::skip(no_slow);
  const Request request = run.api().build(*order);
  auto running = run.begin(request, "the first request, which is slow");
  std::vector<CaseRun::Sent> all;
  for (const auto until = Clock::now() + Millis(10'000); Clock::now() < until;) {
    std::this_thread::sleep_for(Millis(150));
    all.push_back(run.send_once(request, "a retry while it runs"));
    if (is_over(running) || run.api().is_dry()) break;
  }
  const auto first = running.get();
  const auto settled = run.until_settled(request, "a retry afterwards", run.spec().timeout);
  if (auto often = ran_too_often(run, 1, "A slow request and its retries")) return *often;
  if (!first || !first->is_success()) {
    return CaseRun::skip("The API did not accept the slow request: " + shown(first) + ".");
  }
  if (settled && settled->is_success()) {
    all.push_back(first);
    if (auto bad = judge_answers(run, all, *settled, "a slow request and its retries")) {
      return *bad;
    }
  }
  return CaseRun::pass();
}

CaseEnd advice(CaseRun& run) {
  if (!run.profile().advises_retry)
    return CaseRun::skip("The profile does not require Retry-After.");
  const auto order = slow_order(run);
  if (!order) return CaseRun::skip(no_slow);
  const Request request = run.api().build(*order);
  auto running = run.begin(request, "the first request, which is slow");
  const auto meanwhile = ask_meanwhile(run, running, request, "its retry while it runs");
  running.get();
  if (!meanwhile || !*meanwhile || (*meanwhile)->is_success()) {
    return CaseRun::skip("The API refused no request while the first one ran.");
  }
  if ((*meanwhile)->find("Retry-After") != nullptr) return CaseRun::pass();
  return CaseRun::fail("A retry received " + shown(*meanwhile) +
                       " without `Retry-After` while the first request ran.");
}

constexpr std::array cases_of_races{
    Case{{.id = "race.two",
          .severity = money,
          .title = "2 concurrent requests with one key execute once",
          .reason = "Concurrent retries both look the key up before either has stored it.",
          .source = draft_race,
          .money = money_of_race,
          .mend = mend_race},
         &two},
    Case{{.id = "race.ten",
          .severity = money,
          .title = "10 concurrent requests with one key execute once",
          .reason = "More requests hit more of the moments between two steps.",
          .source = draft_race,
          .money = money_of_race,
          .mend = mend_race},
         &ten},
    Case{{.id = "race.many",
          .severity = money,
          .title = "100 concurrent requests with one key execute once",
          .reason = "A job queue that restarts delivers everything at once.",
          .source = draft_race,
          .money = money_of_race,
          .mend = mend_race},
         &many},
    Case{{.id = "race.bodies",
          .severity = money,
          .title = "Of 10 concurrent amounts with one key, one executes",
          .reason = "A client that uses one key for several requests by mistake must not pay "
                    "twice.",
          .source = draft_race,
          .money = money_of_race,
          .mend = mend_race},
         &bodies},
    Case{{.id = "inflight.retry",
          .severity = correctness,
          .title = "A retry waits or is refused while the first request runs",
          .reason = "There is no result yet; any other success is invented.",
          .source = draft_race,
          .money = "A client mistakes the invented answer for the receipt of a payment that may "
                   "still fail.",
          .mend = "Answer 409 while the first request runs, or wait for its answer."},
         &in_flight},
    Case{{.id = "inflight.misuse",
          .severity = correctness,
          .title = "The API refuses a key with another body while the first request runs",
          .reason = "The digest of the first request is known before its operation ends.",
          .source = draft_race,
          .money = "A client mistakes the answer to another payment for its own.",
          .mend = "Store the digest of the request when the key is reserved."},
         &in_flight_misuse},
    Case{{.id = "slow.first",
          .severity = money,
          .title = "A slow request keeps its key",
          .reason = "A lock that expires before the operation ends lets a retry execute it again.",
          .source = draft_race,
          .money = "Clients retry most when the API is slow: each retry charges again.",
          .mend = "Renew the lock while the operation runs; after it has expired, the outcome is "
                  "unknown: execute nothing."},
         &slow_first},
    Case{{.id = "retry.advice",
          .severity = courtesy,
          .title = "A refusal says when to retry",
          .reason = "Without Retry-After clients guess, and most retry too early.",
          .source = "RFC 9110, section 10.2.3",
          .money = "None.",
          .mend = "Send Retry-After with refusals while the first request runs."},
         &advice},
};

}  // namespace

std::span<const Case> race_cases() { return cases_of_races; }

}  // namespace idem::check
