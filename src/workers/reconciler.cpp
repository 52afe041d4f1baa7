#include "workers/reconciler.hpp"

#include "core/bytes/digests.hpp"
#include "core/evidence/event_source.hpp"
#include "core/record/stored_fence.hpp"

#include <idem/crash_point.hpp>
#include <idem/store_wait.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

namespace idem::workers {
namespace {

using Verdict = Resolve::Verdict;

double dice() {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(random);
}

constexpr const char* denied = "earlier evidence says otherwise";

std::string source_of(const Provider& provider) { return "poll:" + provider.name; }

std::string evidence_of(Finding finding, const Provider::Answer& answer) {
  return R"({"said":")" + std::string(name_of(finding)) + R"(","status":)" +
         std::to_string(answer.status) + R"(,"body_sha256":")" + to_hex(sha256(answer.body)) +
         R"("})";
}

auto plan_in(Store& store, Reschedule verb) {
  crash_point(CrashPoint::plan_before_commit);
  auto reply = ask_and_wait(store, std::move(verb));
  crash_point(CrashPoint::plan_after_commit);
  return reply;
}

auto resolve_in(Store& store, Resolve verb) {
  crash_point(CrashPoint::resolve_before_commit);
  auto reply = ask_and_wait(store, std::move(verb));
  crash_point(CrashPoint::resolve_after_commit);
  return reply;
}

std::expected<Provider::Answer, Provider::NoAnswer> ask_about(const Record& record,
                                                              std::string_view key,
                                                              const Provider& provider) {
  crash_point(CrashPoint::question_before_first_byte);
  auto answer = provider.ask(record, key);
  crash_point(CrashPoint::question_answered);
  return answer;
}

}  // namespace

Reconciler::Reconciler(Store& store, LogSink log, metrics::Shard& shard, ProviderOf provider_of,
                       KeyOf key_of, unsigned lanes, Breaker::Rule rule)
    : store_(store),
      log_(std::move(log)),
      shard_(shard),
      provider_of_(std::move(provider_of)),
      key_of_(std::move(key_of)),
      lanes_(std::max(1U, lanes)),
      rule_(rule) {}

bool Reconciler::turn() {
  shard_.reconciler_turns.fetch_add(1, std::memory_order_relaxed);
  if (!learn_time()) return false;
  List page{.state = State::unknown, .after = after_, .limit = limits::reconcile_page};
  auto unknown = ask_and_wait(store_, page);
  if (!unknown) {
    note_failure(unknown.error());
    return false;
  }
  failures_.succeeded(log_);
  const bool is_full = unknown->size() >= limits::reconcile_page;
  after_ = is_full ? std::optional(unknown->back().id) : std::nullopt;
  std::vector<Task> due;
  for (Record& record : *unknown) {
    if (!is_due(record, now())) continue;
    auto provider = provider_of_(record);
    if (!provider) log_missing_provider(record);
    if (!provider || is_known_to_wait(*provider, record)) continue;
    due.push_back({std::move(record), std::move(provider)});
  }
  std::atomic<std::size_t> next{0};
  const auto work_off = [&] {
    for (std::size_t i = next++; i < due.size(); i = next++) {
      rest_before_next();
      const MonotonicTime begun = MonotonicClock::now();
      work(due[i]);
      note_took(MonotonicClock::now() - begun);
      shard_.reconciler_turns.fetch_add(1, std::memory_order_relaxed);
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t i = lanes_for(due.size()); i > 1; --i) {
        helpers.emplace_back(work_off);
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: those that started do all the work.
    }
    work_off();
  }
  count(due);
  return is_full && !due.empty();
}

void Reconciler::note_failure(const StoreError& error) {
  shard_.store_errors.add();
  failures_.failed(log_, error.detail);
}

// As few as finish before the next turn, if records take as long as they recently did: each further
// thread competes with requests.
std::size_t Reconciler::lanes_for(std::size_t due) {
  const std::lock_guard lock(mutex_);
  const auto needed = 1 + due * static_cast<std::size_t>(record_took_ / Millis(1)) /
                              static_cast<std::size_t>(limits::reconcile_interval / Millis(1));
  return std::min({std::size_t{lanes_}, due, needed});
}

// Requests share the store's processor with this work, and after an outage records come in crowds.
void Reconciler::rest_before_next() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begins;
  {
    const std::lock_guard lock(mutex_);
    begins = std::max(next_begins_, Clock::now());
    next_begins_ = begins + limits::reconcile_rest_each;
  }
  if (!stopping_) std::this_thread::sleep_until(begins);
}

void Reconciler::note_took(Millis time) {
  const std::lock_guard lock(mutex_);
  record_took_ = std::max(time, (record_took_ * 3 + time) / 4);
}

// ---- when ----

// The store's clock decides when a record is due; a census contains it. The moment of an
// observation comes from the store's reply to the plan.
bool Reconciler::learn_time() {
  const MonotonicTime at = MonotonicClock::now();
  if (store_time_ && at - last_reply_at_ < limits::reconcile_clock_interval) return true;
  const auto census = ask_and_wait(store_, Count{});
  if (!census) {
    // With a time of earlier the turn goes on, and the list says whether the store answers.
    if (store_time_) {
      shard_.store_errors.add();
      return true;
    }
    note_failure(census.error());
    return false;
  }
  store_time_ = census->now;
  last_reply_at_ = at;
  return true;
}

StoreTime Reconciler::now() const {
  return *store_time_ + std::chrono::duration_cast<Millis>(MonotonicClock::now() - last_reply_at_);
}

bool Reconciler::is_due(const Record& record, StoreTime now) const {
  if (record.reconcile_after) return *record.reconcile_after <= now;
  // A record that became unknown at the end of its lease has no plan; one that was given up has had
  // its turns.
  return record.reconcile_attempts == 0;
}

// While a provider fails it is not asked, but events that it has already sent count.
bool Reconciler::is_known_to_wait(const Provider& provider, const Record& record) {
  const std::lock_guard lock(mutex_);
  Health& health = health_of(provider.name);
  if (health.damaged.contains({record.id, record.fence()})) return true;
  if (health.breaker.is_open(MonotonicClock::now())) {
    return health.waiting.contains({record.id, record.fence()});
  }
  health.waiting.clear();
  return false;
}

// Checked for each record: other threads of this turn may have seen it fail meanwhile.
Reconciler::Leave Reconciler::may_ask(const Provider& provider, const Record& record) {
  const std::lock_guard lock(mutex_);
  Health& health = health_of(provider.name);
  if (health.breaker.is_open(MonotonicClock::now()) || health.is_being_tried) {
    if (health.waiting.size() >= limits::reconcile_waiting_max) health.waiting.clear();
    health.waiting.emplace(record.id, record.fence());
    return Leave::no;
  }
  health.is_being_tried = health.breaker.is_on_trial();
  return health.is_being_tried ? Leave::on_trial : Leave::yes;
}

void Reconciler::note_asked(const Provider& provider, Leave leave, std::optional<bool> answered) {
  const std::lock_guard lock(mutex_);
  Health& health = health_of(provider.name);
  // A late answer to a question from before the trial does not end the trial.
  if (leave == Leave::on_trial) health.is_being_tried = false;
  if (!answered) return;
  if (*answered) {
    health.breaker.succeeded();
  } else {
    health.breaker.failed(MonotonicClock::now());
  }
  provider.counts->is_left_alone = health.breaker.is_on_trial();
}

Reconciler::Health& Reconciler::health_of(const std::string& provider) {
  return health_.try_emplace(provider, Health{.breaker = Breaker(rule_)}).first->second;
}

Millis Reconciler::pause_before_next(const Task& task, std::uint32_t turns_done) const {
  const Provider& provider = *task.provider;
  return std::max<Millis>(
      backoff(static_cast<int>(turns_done), provider.retry_first, provider.retry_max, dice()),
      Millis(1));
}

// ---- one turn at one record ----

void Reconciler::work(Task& task) {
  if (stopping_) return;
  const std::string key = key_of_(task.record);
  std::optional<std::string> why_not;
  if (!task.provider->ask) {
    why_not = "no event has come";
  } else if (task.provider->cannot_ask) {
    why_not = task.provider->cannot_ask(task.record, key);
  }
  if (apply_kept(task, why_not.has_value())) return;
  if (why_not) {
    const auto observed_at = plan(task);
    if (observed_at) give_up_or_wait(task, *why_not, {}, *observed_at);
    return;
  }
  const Leave leave = may_ask(*task.provider, task.record);
  if (leave == Leave::no) return;
  const auto observed_at = plan(task);
  if (!observed_at) return note_asked(*task.provider, leave, {});
  const auto answer = ask_about(task.record, key, *task.provider);
  note_asked(*task.provider, leave, answer && answer->status < 500);
  count_question(task, answer, *observed_at);
  if (!answer) return give_up_or_wait(task, answer.error().why, {}, *observed_at);
  conclude(task, *answer, *observed_at);
}

// No other provider is asked instead: it would answer that there is nothing.
void Reconciler::log_missing_provider(const Record& record) {
  if (record.provider.empty() || !missing_.insert(record.provider).second) return;
  log_(LogLevel::error, "provider_missing",
       {{"provider", record.provider}, {"operation_ref", to_hex(record.id.bytes)}});
}

// Applies an event that came while the attempt was running, and that the evidence log kept. If the
// event has no response to replay, the provider is asked for one first, unless it `cannot_ask`.
bool Reconciler::apply_kept(Task& task, bool cannot_ask) {
  const Record& record = task.record;
  const auto log = ask_and_wait(store_, ReadEvidence{record.id});
  if (!log && log.error().is_final()) {
    leave_to_people(task, "its evidence cannot be read: " + log.error().detail, {}, now());
  }
  if (!log) return true;
  auto kept = kept_answer(*log, record.fence());
  if (!kept) return false;
  if (!kept->response && !cannot_ask) return false;
  if (!kept->response) {
    if (kept->is_contradicted) report_contradiction(task, "found and failed", "unknown");
    leave_to_people(task,
                    "the provider says that it was done, and its answer has no response to replay",
                    {}, now());
    return true;
  }
  Resolve verb;
  verb.id = record.id;
  verb.fence = record.fence();
  verb.response = std::move(kept->response);
  verb.source = kept->line->source;
  verb.evidence = kept->line->evidence;
  verb.reason = "it came while the attempt was under way";
  verb.denies = kept->said == Finding::failed;
  verb.observed_at = kept->line->observed_at;
  const auto reply = resolve_in(store_, verb);
  if (!reply && reply.error().is_final()) {
    leave_to_people(task, "the store refused the kept event: " + reply.error().detail, {}, now());
  }
  if (reply && reply->verdict == Verdict::by_evidence) {
    report_contradiction(task, name_of(kept->said), "unknown");
    leave_to_people(task, denied, {}, now());
  }
  if (!reply || reply->verdict != Verdict::done) return true;
  task.ends.push_back(End::resolved);
  if (kept->is_contradicted || reply->is_contradicted) {
    report_contradiction(task, "found and failed", "completed");
  }
  log_(LogLevel::info, "reconciled",
       {{"operation_ref", to_hex(verb.id.bytes)},
        {"provider", task.provider->name},
        {"said", std::string(name_of(kept->said))},
        {"to", "completed"}});
  return true;
}

// Returns the store's time of the plan: every later answer was observed after it.
std::optional<StoreTime> Reconciler::plan(Task& task) {
  Record& record = task.record;
  const Millis pause = pause_before_next(task, record.reconcile_attempts + 1);
  Reschedule verb{.id = record.id,
                  .fence = record.fence(),
                  .attempts = record.reconcile_attempts,
                  .reconcile_in = pause};
  if (auto note = note_to_write(record)) {
    verb.source = source_of(*task.provider);
    verb.evidence = "no_answer";
    verb.reason = "no answer: " + note->why;
    verb.observed_at = note->observed_at;
  }
  const bool writes_note = !verb.source.empty();
  const auto planned = plan_in(store_, std::move(verb));
  if (!planned && planned.error().code == StoreError::Code::damaged) {
    leave_damaged(task, planned.error());
  }
  if (!planned || planned->verdict != Verdict::done) return std::nullopt;
  if (writes_note) mark_written(record);
  auto found = ask_and_wait(store_, Find{record.id});
  const bool is_ours =
      found && *found && (*found)->state == State::unknown && (*found)->fence() == record.fence() &&
      (*found)->reconcile_attempts == record.reconcile_attempts + 1 && (*found)->reconcile_after;
  if (!is_ours) return std::nullopt;
  record = std::move(**found);
  task.ends.push_back(End::scheduled);
  return *record.reconcile_after - pause;
}

void Reconciler::conclude(Task& task, const Provider::Answer& answer, StoreTime observed_at) {
  const Finding finding = judge(task.provider->says, answer.status, answer.body);
  if (finding == Finding::later) {
    return give_up_or_wait(task, "it says nothing yet", evidence_of(finding, answer), observed_at);
  }
  resolve(task, finding, answer, observed_at);
}

void Reconciler::resolve(Task& task, Finding finding, const Provider::Answer& answer,
                         StoreTime observed_at) {
  const Provider& provider = *task.provider;
  Resolve verb;
  verb.id = task.record.id;
  verb.fence = task.record.fence();
  verb.source = source_of(provider);
  verb.evidence = evidence_of(finding, answer);
  verb.observed_at = observed_at;
  verb.grace = provider.grace;
  verb.as = Resolve::As::failed_retryable;
  const StoreTime proof = task.record.locked_until + provider.grace;
  // A refusal may be about an earlier attempt, as "not there" may be.
  if (finding == Finding::failed && observed_at <= proof) return wait_for_proof(task, observed_at);
  if (finding == Finding::not_there && observed_at > proof) {
    // An event may have come while the provider was asked. The store itself refuses the absence if
    // the event reports success; an event that reports failure is checked here.
    const auto log = ask_and_wait(store_, ReadEvidence{verb.id});
    if (!log) return;
    if (reported_finding(*log, verb.fence)) {
      report_contradiction(task, name_of(finding), "unknown");
      return leave_to_people(task, denied, verb.evidence, observed_at);
    }
  }
  if (is_positive(finding)) {
    verb.as = Resolve::As::completed;
    verb.response = rebuild(provider.rebuild, finding, answer.body);
    verb.denies = finding == Finding::failed;
  }
  const auto reply = resolve_in(store_, verb);
  if (!reply) return;  // If it was not applied, the record becomes due again.
  if (reply->verdict == Verdict::done) {
    task.ends.push_back(End::resolved);
    if (reply->is_contradicted) report_contradiction(task, name_of(finding), "completed");
    return log_(LogLevel::info, "reconciled",
                {{"operation_ref", to_hex(verb.id.bytes)},
                 {"provider", provider.name},
                 {"said", std::string(name_of(finding))},
                 {"to", std::string(reply->state ? name_of(*reply->state) : "gone")}});
  }
  if (reply->verdict == Verdict::too_early) return wait_for_proof(task, observed_at);
  if (reply->verdict == Verdict::missing_response) {
    return leave_to_people(
        task, "the provider says that the work was done, and its reply makes no answer", {},
        observed_at);
  }
  if (reply->verdict == Verdict::by_evidence) {
    report_contradiction(task, name_of(finding), "unknown");
    return leave_to_people(task, denied, {}, observed_at);
  }
  on_refused(task, *reply, finding);
}

// Plans a turn for the first moment at which "not there" proves something. Counted from the store's
// time: a turn that comes a moment too early costs a whole pause.
void Reconciler::wait_for_proof(Task& task, StoreTime observed_at) {
  const Record& record = task.record;
  const StoreTime proof = record.locked_until + task.provider->grace + Millis(1);
  if (proof <= observed_at || proof >= *record.reconcile_after) return;
  (void)plan_in(store_, {.id = record.id,
                         .fence = record.fence(),
                         .attempts = record.reconcile_attempts,
                         .reconcile_in = proof - observed_at});
}

void Reconciler::on_refused(Task& task, const Resolve::Reply& reply, Finding finding) {
  const auto record = ask_and_wait(store_, Find{task.record.id});
  if (!record || !contradicts(finding, reply, *record, task.record.fence())) return;
  report_contradiction(task, name_of(finding), reply.state ? name_of(*reply.state) : "gone");
}

void Reconciler::report_contradiction(Task& task, std::string_view said, std::string_view state) {
  task.ends.push_back(End::contradicted);
  log_(LogLevel::error, "evidence_contradicts",
       {{"operation_ref", to_hex(task.record.id.bytes)},
        {"provider", task.provider->name},
        {"said", std::string(said)},
        {"fence", stored_fence(task.record.fence())},
        {"state", std::string(state)}});
}

void Reconciler::give_up_or_wait(Task& task, const std::string& why, const std::string& evidence,
                                 StoreTime observed_at) {
  if (static_cast<int>(task.record.reconcile_attempts) < task.provider->attempts_max) return;
  leave_to_people(task, why, evidence, observed_at);
}

void Reconciler::leave_damaged(const Task& task, const StoreError& error) {
  const Record& record = task.record;
  {
    const std::lock_guard lock(mutex_);
    auto& damaged = health_of(task.provider->name).damaged;
    if (damaged.size() >= limits::reconcile_waiting_max) damaged.clear();
    if (!damaged.emplace(record.id, record.fence()).second) return;
  }
  log_(LogLevel::warning, "reconcile_given_up",
       {{"operation_ref", to_hex(record.id.bytes)},
        {"provider", task.provider->name},
        {"turns", record.reconcile_attempts},
        {"detail", "the record is damaged: " + error.detail}});
}

void Reconciler::leave_to_people(Task& task, const std::string& why, const std::string& evidence,
                                 StoreTime observed_at) {
  const Record& record = task.record;
  const auto turns = static_cast<int>(record.reconcile_attempts);
  const auto left = plan_in(store_, {.id = record.id,
                                     .fence = record.fence(),
                                     .attempts = record.reconcile_attempts,
                                     .reconcile_in = std::nullopt,
                                     .source = source_of(*task.provider),
                                     .evidence = evidence,
                                     .reason = "given up: " + why,
                                     .observed_at = observed_at});
  if (!left && left.error().code == StoreError::Code::damaged) {
    return leave_damaged(task, left.error());
  }
  if (!left || left->verdict != Verdict::done) return;
  task.ends.push_back(End::failed);
  forget_note(record);
  log_(LogLevel::warning, "reconcile_given_up",
       {{"operation_ref", to_hex(record.id.bytes)},
        {"provider", task.provider->name},
        {"turns", turns},
        {"detail", why}});
}

}  // namespace idem::workers
