#include "store/dynamodb/store_driver.hpp"

#include "core/record/which_store.hpp"
#include "loop/gathering.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>

namespace idem::dynamodb {

/// Lets a sweep wait for the records that it ends.
struct Ends : Gathering {
  std::optional<StoreError> error{};
};

namespace {

using Code = StoreError::Code;

Subject subject_of(const Reserve& verb) {
  Subject subject{.id = verb.id};
  for (const OtherName& other : verb.also) subject.also.push_back(other.id);
  subject.generation = verb.generation;
  subject.needs_answer = true;
  subject.is_new_work = true;
  subject.quota = verb.quota;
  if (verb.quota) subject.scope = verb.scope;
  return subject;
}

/// What a call about one record needs to know of it; none: the call is about no single record.
std::optional<Subject> subject_of(const StoreCall& call) {
  return std::visit(
      [](const auto& verb) -> std::optional<Subject> {
        using Verb = std::decay_t<decltype(verb)>;
        if constexpr (std::is_same_v<Verb, Reserve>) {
          return subject_of(verb);
        } else if constexpr (std::is_same_v<Verb, Accept>) {
          return subject_of(verb.as);
        } else if constexpr (std::is_same_v<Verb, Resolve>) {
          return Subject{.id = verb.id, .needs_answer = true};
        } else if constexpr (std::is_same_v<Verb, CacheBust>) {
          return Subject{.id = verb.id, .needs_answer = true, .needs_evidence = true};
        } else if constexpr (std::is_same_v<Verb, PutRecord>) {
          return Subject{.id = verb.id,
                         .generation = verb.generation,
                         .needs_answer = true,
                         .needs_evidence = true};
        } else if constexpr (std::is_same_v<Verb, Reseal>) {
          return Subject{.id = verb.id, .needs_answer = true, .needs_request = true};
        } else if constexpr (std::is_same_v<Verb, Reschedule> ||
                             std::is_same_v<typename Verb::Reply, OwnerReply>) {
          return Subject{.id = verb.id};
        } else {
          return std::nullopt;
        }
      },
      call);
}

template <class Expected>
StoreResult to_result(Expected&& expected) {
  if (!expected) return std::unexpected(std::move(expected.error()));
  return StoreReply(std::move(*expected));
}

}  // namespace

StoreDriver::StoreDriver(Loop& loop, ChangeNotifier& changes, Url url,
                         const DynamodbOptions& options)
    : Timed(loop),
      changes_(changes),
      options_(options),
      place_(place_of(url)),
      client_(loop, std::move(url), &of_environment),
      identity_(client_, versions_, options.waits),
      tallies_(client_),
      steps_(client_, versions_, identity_, tallies_, options.clock),
      scans_(client_),
      pieces_(client_),
      journals_(client_, versions_, [this] { return steps_.now(); }) {
  identity_.set_now([this] { return steps_.now(); });
  identity_.set_survey([this](IdentitySteps::Beat beat) {
    return scans_.survey(std::move(beat), [this] { return steps_.now(); });
  });
}

Task<std::expected<Identity, std::string>> StoreDriver::open(IdentitySettings settings) {
  settings_ = settings;
  const auto no_new_one = why_not(options_.which, std::nullopt);
  auto opening = open_table(client_, !no_new_one);
  const TableCheck checked = co_await std::move(opening);
  if (checked.is_missing && no_new_one) co_return std::unexpected(*no_new_one);
  if (checked.refusal) co_return std::unexpected(*checked.refusal);
  for (const std::string& warning : checked.warnings) {
    if (options_.warn) options_.warn(warning);
  }
  if (!steps_.now()) {
    co_return std::unexpected("its answers have no Date, by which leases are measured");
  }
  auto settling = identity_.settle(std::move(settings), options_.which);
  auto settled = co_await std::move(settling);
  if (!settled) co_return std::unexpected(std::move(settled.error()));
  if (options_.opened) options_.opened({store_id_text(settled->store_id), place_, settled->is_new});
  is_open_ = true;
  co_return std::move(settled->identity);
}

Task<void> StoreDriver::flush() {
  Task<void> flushing = tallies_.flush();
  co_await std::move(flushing);
}

void StoreDriver::close() {
  is_closed_ = true;
  client_.close();
}

void StoreDriver::tick(MonotonicTime now) {
  if (is_closed_ || !is_open_) return;
  // Posted: a coroutine may end when it is spawned, and a tick must not make or destroy a Timed.
  if (identity_.is_due() && !is_refreshing_) {
    is_refreshing_ = true;
    loop_.post([this] { loop_.spawn(refresh_identity()); });
  }
  Watcher* const watcher = changes_.watcher();
  if (watcher == nullptr || is_polling_ || now < poll_at_) return;
  auto ids = watcher->awaited();
  if (ids.empty()) return seen_.clear();
  is_polling_ = true;
  loop_.post([this, ids = std::move(ids)]() mutable { loop_.spawn(poll_awaited(std::move(ids))); });
}

Task<void> StoreDriver::refresh_identity() {
  Task<void> refreshing = identity_.refresh();
  co_await std::move(refreshing);
  is_refreshing_ = false;
}

Task<void> StoreDriver::poll_awaited(std::vector<RecordId> ids) {
  auto asking = scans_.versions(ids);
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
  poll_at_ = MonotonicClock::now() + limits::dynamodb_look_interval;
  is_polling_ = false;
}

// ---- calls ----

Task<void> StoreDriver::serve(StoreCall call, StoreCompletion done) {
  Task<StoreResult> answering = answer(call);
  StoreResult result = co_await std::move(answering);
  changes_.notify(call, result);
  done(std::move(result));
}

Task<StoreResult> StoreDriver::answer(StoreCall& call) {
  Task<StoreResult> answering = [&]() -> Task<StoreResult> {
    if (auto subject = subject_of(call)) return steps_.make(call, std::move(*subject));
    if (const auto* verb = std::get_if<Find>(&call)) return find(verb->id);
    if (const auto* verb = std::get_if<Sweep>(&call)) return sweep(verb->limit);
    if (const auto* verb = std::get_if<Reap>(&call)) return reap(verb->limit);
    if (std::holds_alternative<Claim>(call)) return claim(call);
    if (const auto* verb = std::get_if<List>(&call)) return list(*verb);
    if (std::holds_alternative<Count>(call)) return count();
    if (const auto* verb = std::get_if<AdoptRoutes>(&call)) return adopt(*verb);
    if (const auto* verb = std::get_if<AppendLine>(&call)) return journals_.append(*verb);
    if (const auto* verb = std::get_if<ReadLines>(&call)) return journals_.read(*verb);
    if (const auto* verb = std::get_if<ListJournals>(&call)) return journals_.list(*verb);
    if (const auto* verb = std::get_if<DropJournal>(&call)) return journals_.drop(*verb);
    return read_evidence(std::get<ReadEvidence>(call).id);
  }();
  co_return co_await std::move(answering);
}

Task<StoreResult> StoreDriver::find(RecordId id) {
  auto looking = steps_.look_at(id);
  auto found = co_await std::move(looking);
  co_return to_result(std::move(found));
}

Task<StoreResult> StoreDriver::read_evidence(RecordId id) {
  auto reading = steps_.evidence_of(id);
  auto log = co_await std::move(reading);
  co_return to_result(std::move(log));
}

Task<StoreResult> StoreDriver::claim(StoreCall& call) {
  // By the present generation, so that none begins behind the close of a store that was copied.
  auto asking = identity_.claiming_generation();
  const auto generation = co_await std::move(asking);
  if (!generation) co_return StoreReply(std::optional<Claimed>());
  // Most often the first one is claimable. If other nodes claim at the same time, or many requests
  // have expired and wait for the sweeper, this tries the later ones, too.
  std::size_t seen = 0;
  for (std::size_t limit = limits::dynamodb_claims_seen_min;
       limit <= limits::dynamodb_claims_seen_max; limit *= 8) {
    const auto now = steps_.now();
    if (!now) co_return std::unexpected(unknown_time());
    auto looking = scans_.claimable(*now, limit);
    const auto due = co_await std::move(looking);
    if (!due) co_return std::unexpected(due.error());
    for (const Due& one : std::span(*due).subspan(std::min(due->size(), seen))) {
      Task<StoreResult> claiming =
          steps_.make(call, {.id = one.id, .generation = *generation, .needs_request = true});
      StoreResult claimed = co_await std::move(claiming);
      // By another generation than the present one: the next claim knows it.
      if (!claimed && claimed.error().code == Code::refused) {
        co_return StoreReply(std::optional<Claimed>());
      }
      if (!claimed && claimed.error().code == Code::damaged) {
        Task<void> hiding = scans_.hide(one.id);
        co_await std::move(hiding);
      }
      if (!claimed || std::get<std::optional<Claimed>>(*claimed)) co_return claimed;
    }
    if (due->size() < limit) break;
    seen = limit;
  }
  co_return StoreReply(std::optional<Claimed>());
}

Task<StoreResult> StoreDriver::list(List verb) {
  const auto now = steps_.now();
  if (!now) co_return std::unexpected(unknown_time());
  auto listing = scans_.list(std::move(verb), *now);
  auto records = co_await std::move(listing);
  co_return to_result(std::move(records));
}

Task<StoreResult> StoreDriver::count() {
  auto counting = tallies_.counts();
  const auto counts = co_await std::move(counting);
  if (!counts) co_return std::unexpected(to_store_error(counts.error()));
  // An operator has to look at each of these: they are counted where they lie.
  auto counting_unknown = scans_.count(State::unknown);
  const auto unknown = co_await std::move(counting_unknown);
  if (!unknown) co_return std::unexpected(unknown.error());
  auto looking = scans_.oldest_unknown();
  const auto oldest = co_await std::move(looking);
  if (!oldest) co_return std::unexpected(oldest.error());
  const auto now = steps_.now();
  if (!now) co_return std::unexpected(unknown_time());
  Census census;
  for (std::size_t state = 1; state <= 6; ++state) {
    census.by_state[state] =
        static_cast<std::uint64_t>(std::max<std::int64_t>((*counts)[state], 0));
  }
  census.by_state[static_cast<std::size_t>(State::unknown)] = *unknown;
  census.oldest_unknown = *oldest;
  census.leases_ended = steps_.leases_ended();
  // Another process may have known the service's time better.
  census.now = std::max(*now, oldest->value_or(*now));
  co_return StoreReply(census);
}

Task<StoreResult> StoreDriver::adopt(AdoptRoutes verb) {
  auto adopting = identity_.adopt(std::move(verb), settings_);
  auto reply = co_await std::move(adopting);
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  co_return StoreReply(std::move(*reply));
}

// ---- sweeping and reaping ----

Task<void> StoreDriver::end_one(RecordId id, const StoreCall& one,
                                std::vector<LifecycleStep>& steps, Ends& ends) {
  Task<StoreResult> ending = steps_.make(one, {.id = id});
  StoreResult ended = co_await std::move(ending);
  bool is_damaged = false;
  if (ended) {
    auto& made = std::get<std::vector<LifecycleStep>>(*ended);
    steps.insert(steps.end(), made.begin(), made.end());
    is_damaged = std::ranges::any_of(made, &LifecycleStep::damaged);
  } else if (ended.error().is_final() && ended.error().code != Code::unstorable) {
    is_damaged = true;
    if (ended.error().code == Code::damaged) steps.push_back({id, State{}, std::nullopt, {}, true});
  } else {
    ends.error = std::move(ended.error());
  }
  if (is_damaged) {  // It would be due at every sweep, and only an operator can end it.
    Task<void> hiding = scans_.hide(id);
    co_await std::move(hiding);
  }
  ends.one_done(loop_);
}

// Each pass also removes the orphans of one bucket.
Task<StoreResult> StoreDriver::sweep(std::size_t limit) {
  if (const auto now = steps_.now()) {
    Task<void> cleaning = pieces_.sweep(next_bucket_, *now);
    co_await std::move(cleaning);
    next_bucket_ = (next_bucket_ + 1) % bucket_count;
  }
  const std::string lists{list_of(State::pending), list_of(State::in_progress)};
  Task<StoreResult> sweeping = lifecycle(lists, Sweep{1}, limit);
  co_return co_await std::move(sweeping);
}

Task<StoreResult> StoreDriver::reap(std::size_t limit) {
  const auto now = steps_.now();
  if (!now) co_return std::unexpected(unknown_time());
  auto looking = scans_.due(std::string(1, list_of_blanks), *now, limit);
  const auto blanks = co_await std::move(looking);
  if (!blanks) co_return std::unexpected(blanks.error());
  for (const Due& blank : *blanks) {
    Task<void> ending = steps_.end_blank(blank.id);
    co_await std::move(ending);
  }
  const std::string lists{list_of(State::completed), list_of(State::failed_retryable),
                          list_of(State::expired)};
  Task<StoreResult> reaping = lifecycle(lists, Reap{1}, limit);
  co_return co_await std::move(reaping);
}

Task<StoreResult> StoreDriver::lifecycle(std::string lists, StoreCall one, std::size_t limit) {
  const auto now = steps_.now();
  if (!now) co_return std::unexpected(unknown_time());
  auto looking = scans_.due(std::move(lists), *now, limit);
  const auto due = co_await std::move(looking);
  if (!due) co_return std::unexpected(due.error());
  std::vector<LifecycleStep> steps;
  Ends ends{{due->size()}};
  for (const Due& record : *due) loop_.spawn(end_one(record.id, one, steps, ends));
  Task<void> waiting = ends.all();
  co_await std::move(waiting);
  // The steps that were made are reported and counted; a failed one is due again next time.
  if (steps.empty() && ends.error) co_return std::unexpected(std::move(*ends.error));
  co_return StoreReply(std::move(steps));
}

}  // namespace idem::dynamodb
