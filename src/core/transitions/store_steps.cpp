#include "core/transitions/store_steps.hpp"

#include "core/naming/adopt_routes.hpp"
#include "core/transitions/verb_check.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <limits>

namespace idem {
namespace {

using transitions::Change;
using transitions::Write;
using Parts = RecordTable::Parts;
using Found = std::expected<std::optional<Row>, StoreError>;

/// A transition's record beside the row it was read from.
struct Subject {
  struct Where {
    RecordId id;
    std::int64_t place;
  };
  std::optional<Record> record;
  std::optional<Where> row;
  std::optional<StateSummary> was;
  std::optional<Fence> was_fence;
  UsageChange used{};  ///< By the row that was read.
  /// Of a key that its scope's rate admitted.
  std::optional<std::chrono::microseconds> next_key{};
};

StateSummary summary_of(const Record& record) { return {record.state, record.changed_at}; }

Subject subject_of(std::optional<Row>&& row) {
  Subject subject;
  if (row) {
    subject.was = summary_of(row->record);
    subject.was_fence = row->record.fence();
    subject.used = usage_of(row->record);
    subject.row = {row->record.id, row->place};
    subject.record = std::move(row->record);
  }
  return subject;
}

void write_back(const StepContext& context, Subject& subject, const Change& change) {
  if (change.write == Write::none) return;
  RecordTable& table = context.table;
  const bool stays = change.write != Write::erase;
  UsageChange usage = difference(subject.used, stays ? usage_of(*subject.record) : UsageChange{});
  usage.next_key = subject.next_key;
  if (!usage.is_none()) table.add_usage(subject.record->scope, usage);
  context.tally.changed(subject.record->id, subject.was,
                        stays ? std::optional(summary_of(*subject.record)) : std::nullopt);
  switch (change.write) {
    case Write::none:
      return;
    case Write::insert:
      // The old row counted as no record.
      if (subject.row) table.erase(subject.row->id, subject.row->place);
      return table.insert(std::move(*subject.record));
    case Write::update:
      return table.update({std::move(*subject.record), subject.row->place}, change);
    case Write::erase:
      return table.erase(subject.row->id, subject.row->place);
  }
}

bool is_live(const Found& found, StoreTime now) noexcept {
  return found && *found && transitions::is_live((*found)->record, now);
}

struct FoundAny {
  Found row;
  const std::vector<Fingerprint>& offered;  ///< To be compared with the row's.
};

/// Among the live records under the reserve's names, the first whose fingerprint matches; else the
/// first; else the row under its id, if any. An error if any of them cannot be read.
FoundAny find_any(const StepContext& context, const Reserve& verb) {
  const auto& own_offered = verb.fingerprints;
  FoundAny first{context.table.load(verb.id, Parts::answer, context.now), own_offered};
  if (verb.also.empty() || !first.row) return first;
  bool is_found = is_live(first.row, context.now);
  if (is_found && transitions::any_matches(own_offered, (*first.row)->record.fingerprint)) {
    return first;
  }
  const OtherName* second = nullptr;
  for (const OtherName& other : verb.also) {
    const auto& offered = other.fingerprints.empty() ? own_offered : other.fingerprints;
    Found found = context.table.load(other.id, Parts::answer, context.now);
    if (!found) return {std::move(found), offered};
    if (!is_live(found, context.now)) continue;
    if (transitions::any_matches(offered, (*found)->record.fingerprint)) {
      return {std::move(found), offered};
    }
    if (!is_found && second == nullptr) second = &other;
  }
  if (second == nullptr) return first;
  return {context.table.load(second->id, Parts::answer, context.now),
          second->fingerprints.empty() ? own_offered : second->fingerprints};
}

/// The attempt that the verb ends is as its caller read it.
bool still_runs(const std::optional<Row>& row, const PutRecord& verb) {
  if (!row || !verb.record) return false;
  const Record& there = row->record;
  const Record& read = *verb.record;
  return there.state == State::in_progress && there.attempt && there.attempt->token == *verb.ends &&
         there.fence() == read.fence() && there.locked_until == read.locked_until &&
         there.recovery_point == read.recovery_point;
}

class StepMaker {
 public:
  explicit StepMaker(const StepContext& context) : context_(context) {}

  StoreResult operator()(Reserve& verb) {
    if (verb.generation != context_.naming.generation) return wrong_generation();
    auto [row, offered] = find_any(context_, verb);
    if (!row) return std::unexpected(std::move(row.error()));
    const bool is_new = !is_live(row, context_.now);
    Subject subject = subject_of(std::move(*row));
    const auto admission = lock_usage(verb);
    if (is_new && verb.quota) {
      if (auto refusal = refuse(verb, subject)) return ReserveOutcome(std::move(*refusal));
    }
    if (!is_new) {
      if (auto refusal = refuse_return(verb, subject, offered, 0)) return ReserveOutcome(*refusal);
    }
    auto step = transitions::reserve(subject.record, verb, offered, context_.now, context_.fences);
    note_ended_lease(subject, step);
    write_back(context_, subject, step.change);
    return std::move(step.outcome);
  }

  StoreResult operator()(Accept& verb) {
    if (verb.as.generation != context_.naming.generation) return wrong_generation();
    auto [row, offered] = find_any(context_, verb.as);
    if (!row) return std::unexpected(std::move(row.error()));
    const bool is_new = !is_live(row, context_.now);
    Subject subject = subject_of(std::move(*row));
    const auto admission = lock_usage(verb.as);
    if (is_new && verb.as.quota) {
      if (auto refusal = refuse(verb.as, subject)) return ReserveOutcome(std::move(*refusal));
    }
    if (!is_new) {
      const std::size_t bytes = verb.request.size();
      if (auto refusal = refuse_return(verb.as, subject, offered, bytes)) {
        return ReserveOutcome(*refusal);
      }
    }
    auto step = transitions::accept(subject.record, verb, offered, context_.now);
    note_ended_lease(subject, step);
    write_back(context_, subject, step.change);
    return std::move(step.outcome);
  }

  StoreResult operator()(Claim& verb) {
    const auto id = context_.table.next_claimable(context_.now);
    if (!id) return std::optional<Claimed>();
    auto found = context_.table.load(*id, Parts::all, context_.now);
    if (!found || !*found) {  // None: the index says that it is due, and there is no row.
      // What only cannot be opened for now stays due.
      const bool is_lost = found || found.error().code == StoreError::Code::damaged;
      if (is_lost) context_.table.hide_from_claims(*id);
      if (found) return std::optional<Claimed>();
      return std::unexpected(std::move(found.error()));
    }
    Subject subject = subject_of(std::move(*found));
    auto step = transitions::claim(*subject.record, verb, context_.now, context_.fences);
    write_back(context_, subject, step.change);
    return std::optional<Claimed>(std::move(step.outcome));
  }

  StoreResult operator()(Dispatched& verb) { return owners(verb, transitions::dispatched); }
  StoreResult operator()(Renew& verb) { return owners(verb, transitions::renew); }
  StoreResult operator()(Advance& verb) { return owners(verb, transitions::advance); }
  StoreResult operator()(Complete& verb) { return owners(verb, transitions::complete); }
  StoreResult operator()(Release& verb) { return owners(verb, transitions::release); }
  StoreResult operator()(MarkUnknown& verb) { return owners(verb, transitions::mark_unknown); }

  StoreResult operator()(Resolve& verb) { return by_evidence(verb, transitions::resolve); }
  StoreResult operator()(CacheBust& verb) {
    const auto log = context_.table.evidence(verb.id);
    if (!log) return std::unexpected(log.error());
    return by_evidence(verb, [&](auto& record, const CacheBust& bust, StoreTime now) {
      return transitions::cache_bust(record, bust, *log, now);
    });
  }

  StoreResult operator()(Reschedule& verb) {
    return by_evidence(verb, transitions::reschedule, !verb.source.empty());
  }

  StoreResult operator()(Reseal& verb) {
    auto found = context_.table.load(verb.id, Parts::all, context_.now);
    if (!found) return std::unexpected(std::move(found.error()));
    Subject subject = subject_of(std::move(*found));
    auto step = transitions::reseal(subject.record, verb, context_.now);
    write_back(context_, subject, step.change);
    return step.outcome;
  }

  StoreResult operator()(PutRecord& verb) {
    if (verb.generation != context_.naming.generation) return wrong_generation();
    auto found = context_.table.load(verb.id, Parts::slot, context_.now);
    if (!found) return std::unexpected(std::move(found.error()));
    const auto log = context_.table.evidence(verb.id);
    if (!log) return std::unexpected(log.error());
    const bool is_as_asked = log->size() == verb.behind && (!verb.ends || still_runs(*found, verb));
    if (!is_as_asked) return PutRecord::Reply{false, log->size()};
    context_.fences.raise(verb.fence_floor);
    Subject subject = subject_of(std::move(*found));
    if (verb.record) {
      subject.record = std::move(verb.record);
      write_back(context_, subject, {Write::insert, true, true});
    } else if (subject.row) {
      write_back(context_, subject, {Write::erase, true, true});
    }
    for (const EvidenceEntry& entry : verb.evidence) {
      context_.table.append_evidence(verb.id, entry);
    }
    return PutRecord::Reply{true, log->size() + verb.evidence.size()};
  }

  StoreResult operator()(Find& verb) {
    auto found = context_.table.load(verb.id, Parts::all, context_.now);
    if (!found) return std::unexpected(std::move(found.error()));
    Subject subject = subject_of(std::move(*found));
    return transitions::view(std::move(subject.record), context_.now);
  }

  StoreResult operator()(List& verb) {
    std::vector<Record> records;
    for (;;) {
      const auto rest = context_.table.list(verb, context_.now, limits::list_slice_rows, records);
      if (!rest) return records;
      verb.after = rest;
    }
  }

  StoreResult operator()(Sweep& verb) {
    const auto due = context_.table.due_for_sweep(context_.now, verb.limit);
    return lifecycle(due, transitions::sweep, {"sweeper"});
  }
  StoreResult operator()(Reap& verb) {
    // The end of a retention is no decision, and the log entries would outlive the records.
    return lifecycle(context_.table.due_for_reap(context_.now, verb.limit), transitions::reap, {});
  }
  StoreResult operator()(ReadEvidence& verb) {
    auto log = context_.table.evidence(verb.id);
    if (!log) return std::unexpected(std::move(log.error()));
    return std::move(*log);
  }
  StoreResult operator()(Count&) { return context_.tally.census(context_.now); }
  StoreResult operator()(AdoptRoutes& verb) {
    const StepContext* const alone = &context_;
    return adopt_routes(verb, {&alone, 1});
  }

  StoreResult operator()(AppendLine& verb) {
    return append_line(*context_.table.journals(), verb, context_.now);
  }
  StoreResult operator()(ReadLines& verb) {
    return read_lines(*context_.table.journals(), verb, context_.now);
  }
  StoreResult operator()(ListJournals& verb) { return context_.table.journals()->list(verb); }
  StoreResult operator()(DropJournal& verb) {
    return drop_journal(*context_.table.journals(), verb);
  }

  std::vector<LifecycleStep> end_cut_off(const std::vector<Record>& running) {
    std::vector<RecordId> ids;
    for (const Record& record : running) ids.push_back(record.id);
    return lifecycle(ids, transitions::end_cut_off, {"start", "process_ended"});
  }

  void end_restored(const std::vector<Record>& open) {
    std::vector<RecordId> ids;
    for (const Record& record : open) ids.push_back(record.id);
    const auto end = [this](Record& record, StoreTime now) {
      return transitions::end_restored(record, now, context_.fences);
    };
    (void)lifecycle(ids, end, {"restore", "store_restored", "store_restored"});
  }

 private:
  // Until the record is written that the quota has room for.
  std::unique_lock<std::mutex> lock_usage(const Reserve& verb) {
    if (!verb.quota) return {};
    return context_.table.lock_usage(verb.scope);
  }

  /// Why the scope's quota has no room for a new key; none: it has. The old row, which is no longer
  /// live, does not count.
  std::optional<QuotaExceeded> refuse(const Reserve& verb, Subject& subject) {
    Usage usage = context_.table.usage_of(verb.scope);
    usage.active = plus(usage.active, -subject.used.active);
    usage.bytes = plus(usage.bytes, -subject.used.bytes);
    const auto decided = admit(*verb.quota, usage, verb.retention, context_.now);
    if (const auto* refusal = std::get_if<QuotaExceeded>(&decided)) return *refusal;
    subject.next_key = std::get<Admitted>(decided).next_key;
    return std::nullopt;
  }

  // Why the quota has no room for the bytes of a released key that runs again; none: it has.
  std::optional<QuotaExceeded> refuse_return(const Reserve& verb, const Subject& subject,
                                             const std::vector<Fingerprint>& offered,
                                             std::size_t request) {
    const Record& record = *subject.record;
    const bool returns = verb.quota && record.charged != 0 &&
                         record.state == State::failed_retryable &&
                         transitions::any_matches(offered, record.fingerprint);
    if (!returns) return std::nullopt;
    return refuse_growth(*verb.quota, context_.table.usage_of(verb.scope), request, verb.retention);
  }

  // A reserve or accept changes a running record only after the end of its lease.
  void note_ended_lease(const Subject& subject, transitions::Step<ReserveOutcome>& step) {
    const bool ran = subject.was && subject.was->state == State::in_progress;
    if (!ran || step.change.write != Write::update) return;
    std::visit(
        [](auto& outcome) {
          if constexpr (requires { outcome.ended_lease; }) outcome.ended_lease = true;
        },
        step.outcome);
    context_.tally.lease_ended();
    append_decision(subject, {"reserve"});
  }

  // §19: the end of a lease is a decision about the record, too.
  struct Decider {
    std::string_view source{};  ///< Empty: no decision, and no log entry.
    std::string_view of_running = "lease_expired";
    std::string_view of_others = "retention_over";
  };
  void append_decision(const Subject& subject, const Decider& by) {
    const Record& record = *subject.record;
    const bool ran = subject.was->state == State::in_progress;
    const std::string_view evidence = ran ? by.of_running : by.of_others;
    context_.table.append_evidence(record.id, {.fence = subject.was_fence,
                                               .source = std::string(by.source),
                                               .evidence = std::string(evidence),
                                               .reason = {},
                                               .before = subject.was->state,
                                               .after = record.state,
                                               .applied = true,
                                               .observed_at = context_.now,
                                               .recorded_at = context_.now});
  }

  StoreResult wrong_generation() const {
    return std::unexpected(StoreError{
        StoreError::Code::refused,
        "the store's identity is of generation " + std::to_string(context_.naming.generation)});
  }

  template <class Verb, class Transition>
  StoreResult owners(Verb& verb, Transition transition) {
    auto found = context_.table.load(verb.id, Parts::slot, context_.now);
    if (!found) return std::unexpected(std::move(found.error()));
    Subject subject = subject_of(std::move(*found));
    const auto step = transition(subject.record, verb, context_.now);
    write_back(context_, subject, step.change);
    return step.outcome;
  }

  template <class Verb, class Transition>
  StoreResult by_evidence(Verb& verb, Transition transition, bool is_logged = true) {
    auto found = context_.table.load(verb.id, Parts::answer, context_.now);
    if (!found) return std::unexpected(std::move(found.error()));
    Subject subject = subject_of(std::move(*found));
    const auto step = transition(subject.record, verb, context_.now);
    write_back(context_, subject, step.change);
    if (is_logged) context_.table.append_evidence(verb.id, step.entry);
    return step.outcome;
  }

  template <class Transition>
  std::vector<LifecycleStep> lifecycle(const std::vector<RecordId>& due, Transition transition,
                                       const Decider& decided_by) {
    std::vector<LifecycleStep> steps;
    for (const RecordId& id : due) {
      auto found = context_.table.load(id, Parts::slot, context_.now);
      if (!found || !*found) {
        const bool is_damaged = !found && found.error().code == StoreError::Code::damaged;
        if (found || is_damaged) context_.table.hide_from_lifecycle(id);
        if (is_damaged) steps.push_back({id, State{}, std::nullopt, {}, true});
        continue;
      }
      Subject subject = subject_of(std::move(*found));
      const State before = subject.record->state;
      const auto due_at = transitions::due_at(*subject.record);
      const Change change = transition(*subject.record, context_.now);
      if (change.write == Write::none) continue;
      const bool gone = change.write == Write::erase;
      if (!decided_by.source.empty()) append_decision(subject, decided_by);
      steps.push_back({id, before, gone ? std::nullopt : std::optional(subject.record->state),
                       due_at ? context_.now - *due_at : Millis(0)});
      write_back(context_, subject, change);
    }
    return steps;
  }

  const StepContext& context_;
};

}  // namespace

AdoptRoutes::Reply adopt_routes(AdoptRoutes& verb, std::span<const StepContext* const> contexts) {
  const auto visit = [&](const std::function<bool(const std::string&)>& see) {
    bool goes_on = true;
    bool is_readable = true;
    for (const StepContext* const context : contexts) {
      context->table.visit([&](const Record* record) {
        is_readable = record != nullptr;
        goes_on =
            is_readable && (!transitions::is_live(*record, context->now) || see(record->operation));
        return goes_on;
      });
      if (!goes_on) break;
    }
    return is_readable;
  };
  const Naming before = contexts.front()->naming;
  Naming after = before;
  AdoptRoutes::Reply reply = adopt(after, verb, {visit});
  if (after == before) return reply;
  for (const StepContext* const context : contexts) {
    context->naming = after;
    context->table.save(after);
  }
  return reply;
}

std::vector<LifecycleStep> end_cut_off_attempts(const StepContext& context) {
  std::vector<Record> running;
  List verb{.state = State::in_progress};
  verb.limit = std::numeric_limits<std::size_t>::max();  // All that were in one process's memory.
  (void)context.table.list(verb, context.now, limits::list_slice_rows, running);
  return StepMaker(context).end_cut_off(running);
}

void end_restored_records(const StepContext& context) {
  // The unknown ones first, so that no record is met a second time.
  for (const State state :
       {State::unknown, State::in_progress, State::pending, State::failed_retryable}) {
    // At the beginning of time, because a listing leaves out what is past its expiry.
    List verb{.state = state};
    verb.limit = std::numeric_limits<std::size_t>::max();
    std::vector<Record> open;
    do {
      verb.after = context.table.list(verb, StoreTime{}, limits::list_slice_rows, open);
    } while (verb.after);
    StepMaker(context).end_restored(open);
  }
}

StoreResult do_step(StoreCall& call, const StepContext& context) {
  if (auto bad = what_is_wrong(call)) {
    return std::unexpected(StoreError{StoreError::Code::refused, std::move(*bad)});
  }
  drop_zero_fence(call);
  return std::visit(StepMaker(context), call);
}

}  // namespace idem
