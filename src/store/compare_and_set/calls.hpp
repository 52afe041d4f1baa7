#pragma once

#include "loop/gathering.hpp"
#include "loop/loop.hpp"
#include "store/change_notifier.hpp"
#include "store/compare_and_set/due.hpp"
#include "store/compare_and_set/subject.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

/// The calls of a store whose steps are over one record each (steps.hpp), and its work lists.
/// Loop's thread only.
namespace idem::compare_and_set {

template <class Expected>
StoreResult to_result(Expected&& expected) {
  if (!expected) return std::unexpected(std::move(expected.error()));
  return StoreReply(std::forward<Expected>(expected).value());
}

/// `Driver` derives from this, names it as a friend, and has:
///  - `steps_`, a Steps, and `journals_` with `append`, `read`, `list` and `drop`;
///  - `Task<std::expected<StoreTime, StoreError>> now_of_lists()`;
///  - `Task<DueResult> due(Work, StoreTime, std::size_t limit)`, by age;
///  - `Task<void> hide(Work, RecordId)`: from now on due() leaves this record out;
///  - `Task<std::optional<Subject>> claiming()`: what a claim needs; none: nobody may begin now;
///  - `claims_seen_max`: pending requests that a claim reads at most;
///  - `sweep(limit)`, `reap(limit)`, `list(List)`, `count()`, `adopt(AdoptRoutes)`,
///    `read_evidence(RecordId)`: a `Task<StoreResult>` each;
///  - `Task<std::optional<std::vector<std::string>>> versions(std::vector<RecordId>)`, empty where
///    there is no record; none: the store did not answer.
template <class Driver>
class Calls {
 public:
  /// Answers `call`, and notifies the watcher of its changes.
  Task<void> serve(StoreCall call, StoreCompletion done);

 protected:
  Calls(Loop& loop, ChangeNotifier& changes) : changes_(changes), calls_loop_(loop) {}

  /// Sweeps or reaps each record that is due.
  Task<StoreResult> lifecycle(Work work, StoreCall one, std::size_t limit);

  /// For a tick: looks at the records that waiters await, `interval` after the last look.
  void poll_awaited(MonotonicTime now, Millis interval);

  ChangeNotifier& changes_;

 private:
  struct Ends : Gathering {
    std::optional<StoreError> error{};
  };

  Driver& driver() { return static_cast<Driver&>(*this); }

  Task<StoreResult> answer(StoreCall& call);
  Task<StoreResult> find(RecordId id);
  Task<StoreResult> claim(StoreCall& call);
  Task<void> end_one(RecordId id, const StoreCall& one, Work work,
                     std::vector<LifecycleStep>& steps, Ends& ends);
  Task<void> look_at_awaited(std::vector<RecordId> ids, Millis interval);

  Loop& calls_loop_;
  std::map<RecordId, std::string> seen_;  ///< Versions of the awaited records.
  bool is_polling_ = false;
  MonotonicTime poll_at_{};
};

template <class Driver>
Task<void> Calls<Driver>::serve(StoreCall call, StoreCompletion done) {
  Task<StoreResult> answering = answer(call);
  StoreResult result = co_await std::move(answering);
  if (!result && traits_of(call).only_reads) result.error() = of_reading(result.error());
  changes_.notify(call, result);
  done(std::move(result));
}

template <class Driver>
Task<StoreResult> Calls<Driver>::answer(StoreCall& call) {
  Task<StoreResult> answering = [&]() -> Task<StoreResult> {
    if (auto subject = subject_of(call)) return driver().steps_.make(call, std::move(*subject));
    if (const auto* verb = std::get_if<Find>(&call)) return find(verb->id);
    if (const auto* verb = std::get_if<Sweep>(&call)) return driver().sweep(verb->limit);
    if (const auto* verb = std::get_if<Reap>(&call)) return driver().reap(verb->limit);
    if (std::holds_alternative<Claim>(call)) return claim(call);
    if (const auto* verb = std::get_if<List>(&call)) return driver().list(*verb);
    if (std::holds_alternative<Count>(call)) return driver().count();
    if (const auto* verb = std::get_if<AdoptRoutes>(&call)) return driver().adopt(*verb);
    if (const auto* verb = std::get_if<AppendLine>(&call)) return driver().journals_.append(*verb);
    if (const auto* verb = std::get_if<ReadLines>(&call)) return driver().journals_.read(*verb);
    if (const auto* verb = std::get_if<ListJournals>(&call)) return driver().journals_.list(*verb);
    if (const auto* verb = std::get_if<DropJournal>(&call)) return driver().journals_.drop(*verb);
    return driver().read_evidence(std::get<ReadEvidence>(call).id);
  }();
  co_return co_await std::move(answering);
}

template <class Driver>
Task<StoreResult> Calls<Driver>::find(RecordId id) {
  auto looking = driver().steps_.look_at(id);
  auto found = co_await std::move(looking);
  co_return to_result(std::move(found));
}

template <class Driver>
Task<StoreResult> Calls<Driver>::claim(StoreCall& call) {
  auto asking = driver().claiming();
  std::optional<Subject> subject = co_await std::move(asking);
  if (!subject) co_return StoreReply(std::optional<Claimed>());
  // Most often the first one is claimable. If other nodes claim at the same time, or many requests
  // have expired and wait for the sweeper, this tries the later ones, too.
  std::size_t seen = 0;
  for (std::size_t limit = limits::claims_seen_min; limit <= Driver::claims_seen_max; limit *= 8) {
    auto asking_time = driver().now_of_lists();
    const auto now = co_await std::move(asking_time);
    if (!now) co_return std::unexpected(of_reading(now.error()));
    auto looking = driver().due(Work::claim, *now, limit);
    const auto due = co_await std::move(looking);
    if (!due) co_return std::unexpected(of_reading(due.error()));
    for (const Due& one : std::span(*due).subspan(std::min(due->size(), seen))) {
      subject->id = one.id;
      Task<StoreResult> claiming = driver().steps_.make(call, *subject);
      StoreResult claimed = co_await std::move(claiming);
      // The store admits no work of this generation, or is a copy: the next claim knows it.
      if (!claimed && claimed.error().code == StoreError::Code::refused) {
        co_return StoreReply(std::optional<Claimed>());
      }
      if (!claimed && claimed.error().is_final()) {
        Task<void> hiding = driver().hide(Work::claim, one.id);
        co_await std::move(hiding);
      }
      if (!claimed || std::get<std::optional<Claimed>>(*claimed)) co_return claimed;
    }
    if (due->size() < limit) break;
    seen = limit;
  }
  co_return StoreReply(std::optional<Claimed>());
}

template <class Driver>
Task<void> Calls<Driver>::end_one(RecordId id, const StoreCall& one, Work work,
                                  std::vector<LifecycleStep>& steps, Ends& ends) {
  using Code = StoreError::Code;
  Task<StoreResult> ending = driver().steps_.make(one, {.id = id});
  StoreResult ended = co_await std::move(ending);
  bool is_for_an_operator = false;
  if (ended) {
    auto& made = std::get<std::vector<LifecycleStep>>(*ended);
    steps.insert(steps.end(), made.begin(), made.end());
    is_for_an_operator = std::ranges::any_of(made, &LifecycleStep::damaged);
  } else if (ended.error().is_final() && ended.error().code != Code::unstorable) {
    is_for_an_operator = true;
    if (ended.error().code == Code::damaged) steps.push_back({id, State{}, std::nullopt, {}, true});
  } else {
    ends.error = std::move(ended.error());
  }
  if (is_for_an_operator) {  // It would be due at every turn.
    Task<void> hiding = driver().hide(work, id);
    co_await std::move(hiding);
  }
  ends.one_done(calls_loop_);
}

template <class Driver>
Task<StoreResult> Calls<Driver>::lifecycle(Work work, StoreCall one, std::size_t limit) {
  auto asking_time = driver().now_of_lists();
  const auto now = co_await std::move(asking_time);
  if (!now) co_return std::unexpected(of_reading(now.error()));
  auto looking = driver().due(work, *now, limit);
  const auto due = co_await std::move(looking);
  if (!due) co_return std::unexpected(of_reading(due.error()));
  std::vector<LifecycleStep> steps;
  Ends ends{{due->size()}};
  for (const Due& record : *due) calls_loop_.spawn(end_one(record.id, one, work, steps, ends));
  Task<void> waiting = ends.all();
  co_await std::move(waiting);
  // The steps that were made are reported and counted; a failed one is due again next time.
  if (steps.empty() && ends.error) co_return std::unexpected(std::move(*ends.error));
  co_return StoreReply(std::move(steps));
}

template <class Driver>
void Calls<Driver>::poll_awaited(MonotonicTime now, Millis interval) {
  Watcher* const watcher = changes_.watcher();
  if (watcher == nullptr || is_polling_ || now < poll_at_) return;
  auto ids = watcher->awaited();
  if (ids.empty()) return seen_.clear();
  is_polling_ = true;
  // Posted: a coroutine may end when it is spawned, and a tick must not make or destroy a Timed.
  calls_loop_.post([this, interval, ids = std::move(ids)]() mutable {
    calls_loop_.spawn(look_at_awaited(std::move(ids), interval));
  });
}

template <class Driver>
Task<void> Calls<Driver>::look_at_awaited(std::vector<RecordId> ids, Millis interval) {
  auto asking = driver().versions(ids);
  const auto versions = co_await std::move(asking);
  if (versions) {
    std::map<RecordId, std::string> now;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      // A record that is seen for the first time may have changed since its waiter read it.
      const auto before = seen_.find(ids[i]);
      const bool is_new = before == seen_.end() || before->second != (*versions)[i];
      now[ids[i]] = (*versions)[i];
      if (is_new) changes_.watcher()->changed(ids[i]);
    }
    seen_ = std::move(now);
  }
  poll_at_ = MonotonicClock::now() + interval;
  is_polling_ = false;
}

}  // namespace idem::compare_and_set
