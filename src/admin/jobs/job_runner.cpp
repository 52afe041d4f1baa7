#include "admin/jobs/job_runner.hpp"

#include "core/bytes/digests.hpp"

#include <idem/crash_point.hpp>
#include <idem/fingerprint.hpp>
#include <idem/job_limits.hpp>

#include <algorithm>

namespace idem::admin {
namespace {

using Code = StoreError::Code;

std::string digest_of_results(const JobFold& job) {
  std::string all;
  for (std::size_t i = 0; i < job.results().size(); ++i) {
    const JobTarget& target = job.targets()[i];
    const JobResult& result = job.results()[i];
    all += to_hex(target.id.bytes) + ' ' + std::to_string(target.fence) + ' ' +
           std::string(result.verdict) + ' ' + std::string(result.state) + '\n';
  }
  return to_hex(sha256(all));
}

AuditEntry end_of(const JobFold& job) {
  const JobDefinition& definition = *job.definition();
  AuditEntry entry;
  entry.who = definition.by.who;
  entry.role = definition.by.role;
  entry.login = definition.by.login;
  entry.peer = definition.by.peer;
  entry.what = "jobs.end";
  entry.ref = definition.id;
  entry.reason = definition.order.reason;
  entry.before = std::to_string(definition.count) + " records";
  entry.after = std::string(job.cancel() ? "cancelled" : "ended") +
                ": done=" + std::to_string(job.done()) +
                " refused=" + std::to_string(job.refused()) +
                " left=" + std::to_string(job.left()) + " results_sha256=" + digest_of_results(job);
  return entry;
}

}  // namespace

JobRunner::JobRunner(Parts parts) : parts_(std::move(parts)), node_(to_hex(random_token().bytes)) {}

void JobRunner::start() { parts_.loop.spawn(keep_looking()); }

void JobRunner::look_at(const std::string& id) {
  if (parts_.draining.load() || !running_.insert(id).second) return;
  parts_.loop.spawn(run(id));
}

Task<void> JobRunner::keep_looking() {
  for (;;) {
    auto sleeping = parts_.loop.sleep(limits::job_look_interval);
    co_await sleeping;
    auto looking = parts_.journals.open_jobs();
    const auto open = co_await looking;
    // Other workers of this process log what is wrong with the store.
    if (!open) continue;
    for (const std::string& id : *open) look_at(id);
    if (MonotonicClock::now() < drop_at_) continue;
    drop_at_ = MonotonicClock::now() + limits::job_drop_interval;
    auto dropping = drop_old();
    co_await dropping;
  }
}

Task<void> JobRunner::drop_old() {
  auto asking = parts_.journals.now();
  const auto now = co_await asking;
  if (!now) co_return;
  std::string after = job_id_before(*now - limits::job_kept);
  do {
    auto listing = parts_.journals.list(after, limits::jobs_page_max);
    const auto page = co_await listing;
    if (!page) co_return;
    for (const std::string& id : page->ids) {
      auto dropping = parts_.journals.drop(id);
      const auto dropped = co_await dropping;
      if (!dropped) co_return;
    }
    after = page->next;
  } while (!after.empty());
}

Task<void> JobRunner::run(std::string id) {
  Owed owed;
  bool has_warned = false;
  while (!parts_.draining.load()) {
    auto reading = parts_.journals.read(id);
    const auto job = co_await reading;
    std::expected<Next, StoreError> next = Next::wait;
    if (job) {
      auto stepping = step(*job, id, owed);
      next = co_await stepping;
    } else {
      next = std::unexpected(job.error());
    }
    if (next && *next == Next::go_on) continue;
    if (next && *next == Next::leave) break;
    const std::optional<Code> failed = next ? std::nullopt : std::optional(next.error().code);
    if (failed == Code::refused || failed == Code::unstorable) break;
    if (!next && !has_warned) {
      parts_.log(LogLevel::warning, "job_waits", {{"job", id}, {"reason", next.error().detail}});
      has_warned = true;
    }
    auto pausing = parts_.loop.sleep(limits::job_retry_interval);
    co_await pausing;
  }
  running_.erase(id);
  claimed_at_.erase(id);
  due_at_.erase(id);
}

StoreTask<JobRunner::Next> JobRunner::step(Job job, std::string id, Owed& owed) {
  // In front of everything else: a line that cannot be read may be the one that begins or ends it.
  const bool has_trouble = job != nullptr && !job->end() && !job->trouble().empty();
  if (has_trouble) {
    if (reported_.insert(id).second) {
      parts_.log(LogLevel::error, "job_damaged", {{"job", id}, {"reason", job->trouble()}});
    }
    co_return Next::leave;
  }
  if (job == nullptr || !job->has_begun() || job->end()) {
    auto abandoning = abandon(job, id);
    auto next = co_await abandoning;
    co_return next;
  }
  if (!is_ours(*job)) {
    owed = {};
    auto claiming = claim(job, id);
    auto next = co_await claiming;
    co_return next;
  }
  if (!owed.results.empty()) {
    auto noting = note(job, id, owed);
    auto next = co_await noting;
    co_return next;
  }
  if (job->cancel() || job->left() == 0) {
    auto finishing = finish(job, id, owed);
    auto next = co_await finishing;
    co_return next;
  }
  auto deciding = decide_some(job, id, owed);
  auto next = co_await deciding;
  co_return next;
}

// An ended job needs no marker; one that was never begun needs nothing, once its writer has given
// up.
StoreTask<JobRunner::Next> JobRunner::abandon(Job job, std::string id) {
  const bool has_ended = job != nullptr && job->end();
  if (!has_ended) {
    auto asking = parts_.journals.open_for(id);
    const auto age = co_await asking;
    if (!age) co_return std::unexpected(age.error());
    if (age->value_or(Millis(0)) < limits::job_begin_max) co_return Next::leave;
    auto dropping = parts_.journals.drop(id);
    const auto dropped = co_await dropping;
    if (!dropped) co_return std::unexpected(dropped.error());
    if (!*dropped) co_return Next::leave;
  }
  auto closing = parts_.journals.close(id);
  const auto closed = co_await closing;
  if (!closed) co_return std::unexpected(closed.error());
  co_return Next::leave;
}

StoreTask<JobRunner::Next> JobRunner::claim(Job job, std::string id) {
  // Of a store that only this process uses, another claimer is a process that has ended.
  const bool is_alone = parts_.store.asked().has_value();
  const bool is_free = job->claimer().empty() || is_alone || job->claim_age() > limits::job_claim;
  if (!is_free) co_return Next::leave;
  const bool is_taken_over = !job->claimer().empty();
  const MonotonicTime before = MonotonicClock::now();
  auto appending = parts_.journals.append(job, id, write_line(JobClaim{node_}));
  const auto claimed = co_await appending;
  if (!claimed) co_return std::unexpected(claimed.error());
  if (!*claimed) co_return Next::go_on;
  claimed_at_[id] = before;
  parts_.log(LogLevel::info, is_taken_over ? "job_taken_over" : "job_running",
             {{"job", id}, {"left", job->left()}});
  co_return Next::go_on;
}

StoreTask<JobRunner::Next> JobRunner::decide_some(Job job, std::string id, Owed& owed) {
  const JobOrder& order = job->definition()->order;
  const std::size_t most = std::min<std::uint64_t>(
      job->left(), std::clamp<std::size_t>(order.rate, 1, limits::job_chunk_max));
  owed.from = job->results().size();
  std::optional<StoreError> failure;
  for (std::size_t i = 0; i < most && !parts_.draining.load(); ++i) {
    auto pacing = keep_pace(id, order.rate);
    co_await pacing;
    // The job may have been cancelled, or may be another's soon.
    const bool is_late = MonotonicClock::now() - claimed_at_[id] > limits::job_claim / 2;
    if (is_late || job->cancel() || !is_ours(*job)) break;
    auto deciding = parts_.decisions.decide(job, job->targets()[owed.from + i]);
    const auto result = co_await deciding;
    if (!result) {
      failure = result.error();
      break;
    }
    owed.results.push_back(*result);
    crash_point(CrashPoint::job_decided);
  }
  if (!owed.results.empty()) {
    auto noting = note(job, id, owed);
    auto next = co_await noting;
    if (!next || !failure) co_return next;
  }
  if (failure) co_return std::unexpected(std::move(*failure));
  // Nothing was decided, so that a claim that has become old is renewed by a line without results.
  auto renewing = note(job, id, owed);
  auto next = co_await renewing;
  co_return next;
}

StoreTask<JobRunner::Next> JobRunner::note(Job job, std::string id, Owed& owed) {
  const bool fits = is_ours(*job) && !job->end() && owed.from == job->results().size();
  if (!fits) {
    // Another process goes on, and finds these decisions in the evidence.
    owed = {};
    co_return Next::go_on;
  }
  const MonotonicTime before = MonotonicClock::now();
  auto appending =
      parts_.journals.append(job, id, write_line(JobResults{node_, owed.from, owed.results}));
  const auto noted = co_await appending;
  if (!noted) co_return std::unexpected(noted.error());
  if (!*noted) co_return Next::go_on;
  claimed_at_[id] = before;
  owed = {};
  crash_point(CrashPoint::job_noted);
  co_return Next::go_on;
}

StoreTask<JobRunner::Next> JobRunner::finish(Job job, std::string id, Owed& owed) {
  if (job->left() > 0) {
    auto looking = made_so_far(job);
    auto made = co_await looking;
    if (!made) co_return std::unexpected(made.error());
    if (!made->empty()) {
      owed = {job->results().size(), std::move(*made)};
      co_return Next::go_on;
    }
  }
  // First the audit: a crash behind it leaves the same line twice, not none.
  auto auditing = parts_.audit.append(end_of(*job));
  const auto audited = co_await auditing;
  if (!audited) co_return std::unexpected(audited.error());
  if (!is_ours(*job)) co_return Next::go_on;
  const JobEnd end{node_, job->done(), job->refused(), job->cancel() && job->left() > 0};
  auto appending = parts_.journals.append(job, id, write_line(end));
  const auto ended = co_await appending;
  if (!ended) co_return std::unexpected(ended.error());
  if (*ended) {
    parts_.log(
        LogLevel::info, "job_ended",
        {{"job", id}, {"done", job->done()}, {"refused", job->refused()}, {"left", job->left()}});
  }
  co_return Next::go_on;
}

// Of a cancelled job: what was decided behind the last line of results, before a crash or a lost
// reply. Decisions are made in order, so that one in front of an applied one was refused.
StoreTask<std::vector<JobResult>> JobRunner::made_so_far(Job job) {
  const std::size_t from = job->results().size();
  const std::size_t most = std::min<std::uint64_t>(job->left(), limits::job_chunk_max);
  std::vector<JobResult> made;
  for (std::size_t i = 0; i < most; ++i) {
    auto looking = parts_.decisions.decided(job, job->targets()[from + i]);
    const auto found = co_await looking;
    if (!found) co_return std::unexpected(found.error());
    if (!*found) continue;
    made.resize(i, JobResult{"refused", "none"});
    made.push_back(**found);
  }
  co_return made;
}

Task<void> JobRunner::keep_pace(const std::string& id, unsigned rate) {
  const auto now = MonotonicClock::now();
  const MonotonicTime due = std::max(due_at_[id], now);
  // In whole milliseconds: of the fast rates the rest is lost, which makes them slower.
  due_at_[id] = due + std::max(Millis(1), Millis(1'000 / std::max(rate, 1U)));
  if (due <= now) co_return;
  auto sleeping = parts_.loop.sleep(due - now);
  co_await sleeping;
}

}  // namespace idem::admin
