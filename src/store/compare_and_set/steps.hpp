#pragma once

#include "core/transitions/snapshot_table.hpp"
#include "core/transitions/store_steps.hpp"
#include "loop/loop.hpp"
#include "store/attempts.hpp"
#include "store/compare_and_set/subject.hpp"

#include <idem/crash_point.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <functional>

/// The protocol's steps for a store that keeps one record under one name and writes it on the
/// condition that nobody else did: reads the record, makes the step here, and writes its result if
/// the record still has the version that was read; otherwise makes the step anew over the record as
/// it is. Loop's thread only.
namespace idem::compare_and_set {

enum class Next : std::uint8_t { make_again, look_again, written };
using Outcome = std::expected<Next, StoreError>;

/// One call under way. `Seen`: what a conditional write of a record has to know of it.
template <class Seen>
struct Try {
  static constexpr std::string_view others_write = "other writers keep changing this record";
  static constexpr std::string_view identity_changes = "the store's identity is being changed";

  SnapshotTable table;
  std::vector<Seen> seen;
  bool is_read = false;      ///< False: the step is made over what the record may not be.
  bool is_in_doubt = false;  ///< A write may have been done; no later read has settled it.
  Fence last_fence = 0;
  std::string_view why_again = others_write;  ///< Why the last write or look was in vain.

  Seen& seen_of(const RecordId& id) {
    const auto found = std::ranges::find(seen, id, &Seen::id);
    return found != seen.end() ? *found : seen.emplace_back(Seen{id, {}});
  }
  /// The error of the call: in doubt if one of its writes is.
  std::unexpected<StoreError> failed(StoreError error) const {
    if (is_in_doubt) error.code = StoreError::Code::in_doubt;
    return std::unexpected(std::move(error));
  }
};

/// `Medium` derives from this, names it as a friend, and has:
///  - `Seen`: `id`, `bool is_there()`, `void assume(const RowVersion&)` for a record that this
///    process wrote last;
///  - `Task<Outcome> look(Tried&, const Subject&)`: reads the records into the table;
///  - `Task<std::expected<StoreTime, StoreError>> now_for(RecordId)`, and
///    `bool have_one_clock(RecordId, RecordId)`;
///  - `Task<std::optional<StoreError>> admit(const Subject&)`, before each round;
///  - `Task<Outcome> prepare(Tried&, const Subject&, const RecordWrite&, StoreTime)`, before each
///    write: whether the step may be written as it is, else what to do before;
///  - `Task<Outcome> write(Tried&, const StoreCall&, const Subject&, RecordWrite&, StoreTime)`;
///  - `void is_written(const RecordWrite&)`, and `usage_`, the scopes' usage.
template <class Medium, class SeenOfMedium>
class Steps {
 public:
  /// Makes the step of `call`, which must stay unchanged and outlive it.
  Task<StoreResult> make(const StoreCall& call, Subject subject);

  /// The record as Find shows it.
  Task<std::expected<std::optional<Record>, StoreError>> look_at(RecordId id);

  std::uint64_t leases_ended() const noexcept { return leases_ended_; }

 protected:
  using Seen = SeenOfMedium;
  using Tried = Try<Seen>;

  /// `clock`: a test's, in place of the store's; or empty.
  explicit Steps(std::function<StoreTime()> clock) : clock_(std::move(clock)) {}

  std::function<StoreTime()> clock_;
  Attempts attempts_;

 private:
  Medium& medium() { return static_cast<Medium&>(*this); }

  Next assume(Tried& tried, const Subject& subject) const;
  Fence last_fence_before(const Tried& tried, StoreTime now) const;
  /// The step over the records of `tried`; its write is in the table.
  StoreResult step(Tried& tried, const StoreCall& call, const Subject& subject, StoreTime now);
  /// For a reserve that makes a new record: an expired record under another of its names.
  static std::optional<RecordId> found_under_other_name(const Tried& tried, const Subject& subject,
                                                        const RecordWrite& write);
  /// Writes the step, and counts its usage and the lease that it ended.
  Task<Outcome> commit(Tried& tried, const StoreCall& call, const Subject& subject,
                       RecordWrite written, StoreTime now);

  Fence last_fence_ = 0;
  std::uint64_t leases_ended_ = 0;
};

/// Assumes the record if it is probably known without reading it: then make_again.
template <class Medium, class Seen>
Next Steps<Medium, Seen>::assume(Tried& tried, const Subject& subject) const {
  if (!subject.also.empty() || subject.needs_evidence || subject.needs_request) {
    return Next::look_again;
  }
  if (subject.is_new_work) {
    tried.table.put(subject.id, std::nullopt);
    return Next::make_again;
  }
  const Attempts::Kept* const kept = attempts_.find(subject.id);
  if (kept == nullptr) return Next::look_again;
  tried.table.put(subject.id, kept->record);
  tried.seen_of(subject.id).assume(kept->version);
  return Next::make_again;
}

// Fences come from the clock, in microseconds, so that they grow also after the loss of a record or
// of a whole server; never twice the same, and above every known fence of these records.
template <class Medium, class Seen>
Fence Steps<Medium, Seen>::last_fence_before(const Tried& tried, StoreTime now) const {
  const auto micros = std::chrono::microseconds(now.time_since_epoch()).count();
  const Fence last = std::max({last_fence_, static_cast<Fence>(micros), tried.last_fence});
  return std::max(last, tried.table.highest_fence());
}

template <class Medium, class Seen>
StoreResult Steps<Medium, Seen>::step(Tried& tried, const StoreCall& call, const Subject& subject,
                                      StoreTime now) {
  transitions::FenceCounter fences{last_fence_before(tried, now)};
  Naming naming{.generation = subject.generation.value_or(0)};
  StoreCall made = call;
  tried.table.begin_step();
  StoreResult result = do_step(made, {tried.table, fences, tried.table, now, naming});
  last_fence_ = std::max(last_fence_, fences.last);
  return result;
}

template <class Medium, class Seen>
std::optional<RecordId> Steps<Medium, Seen>::found_under_other_name(const Tried& tried,
                                                                    const Subject& subject,
                                                                    const RecordWrite& write) {
  if (write.change.write != transitions::Write::insert) return std::nullopt;
  for (const Seen& seen : tried.seen) {
    if (seen.id != subject.id && seen.is_there()) return seen.id;
  }
  return std::nullopt;
}

template <class Medium, class Seen>
Task<Outcome> Steps<Medium, Seen>::commit(Tried& tried, const StoreCall& call,
                                          const Subject& subject, RecordWrite written,
                                          StoreTime now) {
  const bool ended_a_lease = tried.table.ended_a_lease();
  if (subject.is_new_work) crash_point(CrashPoint::reserve_before_commit);
  if (traits_of(call).ends_attempt) crash_point(CrashPoint::settle_before_commit);
  const auto& record = written.after ? written.after : written.before;
  const std::string scope = record ? record->scope : std::string();
  const bool counts = !written.usage.is_none();
  const bool was_in_doubt = tried.is_in_doubt;  // By an earlier write, which was counted then.
  if (counts) medium().usage_.begin(scope, written.usage);
  tried.why_again = Tried::others_write;
  Task<Outcome> writing = medium().write(tried, call, subject, written, now);
  Outcome outcome = co_await std::move(writing);
  const bool is_done = outcome && *outcome == Next::written;
  // A write in doubt counts as done, also if its record is looked at next: a quota is rather full
  // too soon.
  const bool may_be_done = (tried.is_in_doubt && !was_in_doubt) ||
                           (!outcome && outcome.error().code == StoreError::Code::in_doubt);
  if (counts) medium().usage_.end(scope, written.usage, is_done || may_be_done);
  // What was read is older than a write that may have been done: it proves nothing any more.
  if (outcome && *outcome == Next::make_again && tried.is_in_doubt) tried.is_read = false;
  if (!is_done) co_return outcome;
  if (written.change.write != transitions::Write::none) medium().is_written(written);
  if (subject.is_new_work) crash_point(CrashPoint::reserve_after_commit);
  if (traits_of(call).ends_attempt) crash_point(CrashPoint::settle_after_commit);
  if (ended_a_lease) ++leases_ended_;
  co_return outcome;
}

template <class Medium, class Seen>
Task<StoreResult> Steps<Medium, Seen>::make(const StoreCall& call, Subject subject) {
  static const StoreCall reap_one{Reap{1}};
  MonotonicTime until = MonotonicTime::max();
  Tried tried;
  Next next = assume(tried, subject);
  RecordId clock_of = subject.id;
  for (int races = 0; races < limits::compare_and_set_races_max; ++races) {
    // From the second round on: before that the call may have waited for its place or connection.
    if (races == 1) until = MonotonicClock::now() + limits::store_repeat_max;
    if (MonotonicClock::now() >= until) break;
    if (next == Next::look_again && tried.is_in_doubt && is_once(call)) {
      // What the record has become meanwhile does not tell whose work it is.
      co_return tried.failed({StoreError::Code::in_doubt, "its reply was lost"});
    }
    auto admitting = medium().admit(subject);
    auto refusal = co_await std::move(admitting);
    if (refusal) co_return tried.failed(of_reading(std::move(*refusal)));
    if (next == Next::look_again) {
      Task<Outcome> looking = medium().look(tried, subject);
      const Outcome looked = co_await std::move(looking);
      if (!looked) co_return tried.failed(of_reading(looked.error()));
      if (*looked == Next::look_again) continue;
      next = Next::make_again;
    }
    auto asking_time = medium().now_for(clock_of);
    const auto now = co_await std::move(asking_time);
    if (!now) co_return tried.failed(now.error());
    if (subject.quota) {
      auto looking = medium().usage_.look_at(subject.scope, *subject.quota);
      auto unknown = co_await std::move(looking);
      if (unknown) co_return tried.failed(of_reading(std::move(*unknown)));
      tried.table.put_usage(medium().usage_.of(subject.scope));
    }
    StoreResult result = step(tried, call, subject, *now);
    if (!result) co_return tried.failed(std::move(result.error()));
    RecordWrite written = tried.table.take_write();
    if (written.is_empty()) {
      if (tried.is_read) co_return result;
      next = Next::look_again;  // A record that was only assumed proves nothing.
      continue;
    }
    if (!medium().have_one_clock(clock_of, written.id)) {
      clock_of = written.id;  // The record has another name, and its server a clock of its own.
      continue;
    }
    // An expired record under another name must go before a new one is made: by another clock, or
    // another node's estimate of it, it may not be over yet, and another caller could resume it.
    if (const auto over = found_under_other_name(tried, subject, written)) {
      Task<StoreResult> reaping = make(reap_one, {.id = *over});
      const StoreResult reaped = co_await std::move(reaping);
      if (!reaped) co_return tried.failed(of_reading(reaped.error()));  // Of another record.
      next = Next::look_again;
      continue;
    }
    Task<Outcome> preparing = medium().prepare(tried, subject, written, *now);
    const Outcome prepared = co_await std::move(preparing);
    if (!prepared) co_return tried.failed(prepared.error());
    if (*prepared == Next::look_again) {
      next = Next::look_again;
      continue;
    }
    Task<Outcome> committing = commit(tried, call, subject, std::move(written), *now);
    const Outcome outcome = co_await std::move(committing);
    if (!outcome) co_return tried.failed(outcome.error());
    if (*outcome == Next::written) co_return result;
    next = *outcome;
  }
  co_return tried.failed({StoreError::Code::unavailable, std::string(tried.why_again)});
}

template <class Medium, class Seen>
Task<std::expected<std::optional<Record>, StoreError>> Steps<Medium, Seen>::look_at(RecordId id) {
  Tried tried;
  const Subject subject{.id = id, .needs_answer = true, .needs_request = true};
  const MonotonicTime until = MonotonicClock::now() + limits::store_repeat_max;
  while (!tried.is_read) {
    Task<Outcome> looking = medium().look(tried, subject);
    const Outcome looked = co_await std::move(looking);
    if (!looked) co_return std::unexpected(of_reading(looked.error()));
    if (!tried.is_read && MonotonicClock::now() >= until) {
      co_return std::unexpected(
          StoreError{StoreError::Code::unavailable, std::string(tried.why_again)});
    }
  }
  auto asking_time = medium().now_for(id);
  const auto now = co_await std::move(asking_time);
  if (!now) co_return std::unexpected(now.error());
  auto row = tried.table.load(id, RecordTable::Parts::all, *now);
  if (!row) co_return std::unexpected(std::move(row.error()));
  std::optional<Record> record;
  if (*row) record = std::move((*row)->record);
  co_return transitions::view(std::move(record), *now);
}

}  // namespace idem::compare_and_set
