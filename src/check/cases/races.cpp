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
    "A client that sends again before the first answer is there, or two copies of a job, pay "
    "twice.";
constexpr std::string_view mend_race =
    "Reserve the key by one atomic step (an INSERT with a unique index) before any work.";

/// Fails where two successes report different things; `settled` is what the key answers at the end.
/// An answer that reports nothing is judged by `inflight.retry`.
std::optional<CaseEnd> judge_answers(const CaseRun& run, const std::vector<CaseRun::Sent>& all,
                                     const Answer& settled, const std::string& story) {
  for (const auto& sent : all) {
    if (!sent || !sent->is_success() || is_same_result(run, *sent, settled)) continue;
    if (run.spec().resource && run.resource_of(*sent).empty()) continue;
    return CaseRun::fail("Of " + story + " one got " + shown(sent) +
                         ", and later the key's answer is " + shown(settled) + ".");
  }
  return std::nullopt;
}

CaseEnd race_of(CaseRun& run, std::size_t callers) {
  const Request request = run.api().build(run.api().order());
  const std::vector<Request> requests(callers, request);
  const std::string story = std::to_string(callers) + " copies of one request at once";
  const auto all = run.race(requests, "a copy");
  const bool is_any_there =
      std::ranges::any_of(all, [](const auto& sent) { return sent.has_value(); });
  if (!is_any_there)
    return CaseRun::skip("None of them got an answer: " + shown(all.front()) + ".");
  const auto settled =
      run.until_settled(request, "the same once more, afterwards", run.spec().timeout);
  if (auto often = ran_too_often(run, 1, story)) return *often;
  if (!settled) return CaseRun::skip("Afterwards the key got " + shown(settled) + ".");
  if (settled->is_success()) {
    if (auto bad = judge_answers(run, all, *settled, story)) return *bad;
    return CaseRun::pass();
  }
  const auto won =
      std::ranges::find_if(all, [](const auto& sent) { return sent && sent->is_success(); });
  if (won != all.end()) {
    return CaseRun::fail("Of " + story + " one got " + shown(*won) +
                         ", and afterwards the key gets " + shown(settled) + ".");
  }
  return CaseRun::skip("The request was not accepted: " + shown(settled) + ".");
}

/// Whether two requests meet within a window of milliseconds is chance: they get more than one.
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
  if (requests[0].body == requests[1].body) return CaseRun::skip("The body has no {{amount}}.");
  run.race(requests, "the same key with its own amount");
  if (auto often = ran_too_often(run, 1, "Ten amounts under one key at once")) return *often;
  return CaseRun::pass();
}

/// Asks while the first runs; none: the first was over before the other was answered.
std::optional<CaseRun::Sent> ask_meanwhile(CaseRun& run, std::future<CaseRun::Sent>& running,
                                           const Request& other, const std::string& what) {
  std::this_thread::sleep_for(Millis(250));
  const bool was_over = is_over(running);
  auto sent = run.send(other, what);
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
  if (!meanwhile) return CaseRun::skip("The first request was over within 250 ms: it is not slow.");
  if (!first || !first->is_success()) {
    return CaseRun::skip("The slow request was not accepted: " + shown(first) + ".");
  }
  if (!*meanwhile) return CaseRun::skip("The retry got " + shown(*meanwhile) + ".");
  const Answer& answer = **meanwhile;
  if (answer.is_success()) {
    if (is_same_answer(*first, answer)) return CaseRun::pass("It waited for the first one.");
    const auto executed = run.executed();
    if (executed && *executed > 1) return CaseRun::skip("The retry ran the work: see race.two.");
    return CaseRun::fail("A retry while the first request ran got " + shown(*meanwhile) +
                         ", and the first one " + shown(first) + ".");
  }
  if (answer.status >= 500 && answer.status != 503) {
    return CaseRun::fail("A retry while the first request ran got " + shown(*meanwhile) + ".");
  }
  if (!run.profile().in_flight.empty() && !is_one_of(answer.status, run.profile().in_flight)) {
    return CaseRun::fail("A retry while the first request ran got " + shown(*meanwhile) +
                         ", and the profile says " + statuses(run.profile().in_flight) + ".");
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
  if (!meanwhile) return CaseRun::skip("The first request was over within 250 ms: it is not slow.");
  if (!first || !first->is_success()) {
    return CaseRun::skip("The slow request was not accepted: " + shown(first) + ".");
  }
  if (*meanwhile && is_one_of((*meanwhile)->status, run.profile().in_flight)) {
    return CaseRun::pass("It is refused because the first one runs.");
  }
  const auto bad = judge_refusal(run, *first, *meanwhile, run.profile().misuse,
                                 "The same key with another amount, while the first one ran,");
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
    all.push_back(run.send(request, "a retry while it runs"));
    if (is_over(running) || run.api().is_dry()) break;
  }
  const auto first = running.get();
  const auto settled = run.until_settled(request, "a retry afterwards", run.spec().timeout);
  if (auto often = ran_too_often(run, 1, "A slow request and its retries")) return *often;
  if (!first || !first->is_success()) {
    return CaseRun::skip("The slow request was not accepted: " + shown(first) + ".");
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
  if (!run.profile().advises_retry) return CaseRun::skip("The profile does not ask for it.");
  const auto order = slow_order(run);
  if (!order) return CaseRun::skip(no_slow);
  const Request request = run.api().build(*order);
  auto running = run.begin(request, "the first request, which is slow");
  const auto meanwhile = ask_meanwhile(run, running, request, "its retry while it runs");
  running.get();
  if (!meanwhile || !*meanwhile || (*meanwhile)->is_success()) {
    return CaseRun::skip("Nothing was refused while the first request ran.");
  }
  if ((*meanwhile)->find("Retry-After") != nullptr) return CaseRun::pass();
  return CaseRun::fail("A retry while the first request ran got " + shown(*meanwhile) +
                       " without Retry-After.");
}

constexpr std::array cases{
    Case{{.id = "race.two",
          .severity = money,
          .title = "Two at once run once",
          .reason = "Retries overtake each other: the first look of both finds nothing.",
          .source = draft_race,
          .money = money_of_race,
          .mend = mend_race},
         &two},
    Case{{.id = "race.ten",
          .severity = money,
          .title = "Ten at once run once",
          .reason = "More callers meet more of the moments between two steps.",
          .source = draft_race,
          .money = money_of_race,
          .mend = mend_race},
         &ten},
    Case{{.id = "race.many",
          .severity = money,
          .title = "A hundred at once run once",
          .reason = "A job queue that starts again delivers everything at once.",
          .source = draft_race,
          .money = money_of_race,
          .mend = mend_race},
         &many},
    Case{{.id = "race.bodies",
          .severity = money,
          .title = "Of ten amounts under one key, one runs",
          .reason = "Two requests with one key at once are a client's mistake, which must not "
                    "pay twice.",
          .source = draft_race,
          .money = money_of_race,
          .mend = mend_race},
         &bodies},
    Case{{.id = "inflight.retry",
          .severity = correctness,
          .title = "A retry of a running request waits or is refused",
          .reason = "There is no answer yet; any other success is invented.",
          .source = draft_race,
          .money = "A client takes the invented answer for the receipt of a payment that may "
                   "still fail.",
          .mend = "Answer 409 while the first request runs, or wait for its answer."},
         &in_flight},
    Case{{.id = "inflight.misuse",
          .severity = correctness,
          .title = "A key with another body is refused at once",
          .reason = "The digest is known before the work ends.",
          .source = draft_race,
          .money = "A client takes the answer to another payment for its own.",
          .mend = "Store the digest of the request when the key is reserved."},
         &in_flight_misuse},
    Case{{.id = "slow.first",
          .severity = money,
          .title = "A slow request keeps its key",
          .reason = "A lock that expires before the work ends lets a retry run it again.",
          .source = draft_race,
          .money = "Slow days are the days of retries: each pays again.",
          .mend = "Renew the lock while the work runs; an expired one makes the outcome unknown, "
                  "and runs nothing."},
         &slow_first},
    Case{{.id = "retry.advice",
          .severity = courtesy,
          .title = "A refusal says when to try again",
          .reason = "Without Retry-After clients guess, and most guess too early.",
          .source = "RFC 9110, section 10.2.3",
          .money = "None by itself.",
          .mend = "Send Retry-After with refusals while the first request runs."},
         &advice},
};

}  // namespace

std::span<const Case> race_cases() { return cases; }

}  // namespace idem::check
