#include "store/dynamodb/store_driver.hpp"

#include "core/record/which_store.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"

#include <algorithm>

template class idem::compare_and_set::Calls<idem::dynamodb::StoreDriver>;

namespace idem::dynamodb {

StoreDriver::StoreDriver(Loop& loop, ChangeNotifier& changes, Url url,
                         const DynamodbOptions& options)
    : Timed(loop),
      Calls(loop, changes),
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
  poll_awaited(now, limits::dynamodb_look_interval);
}

Task<void> StoreDriver::refresh_identity() {
  Task<void> refreshing = identity_.refresh();
  co_await std::move(refreshing);
  is_refreshing_ = false;
}

// ---- calls ----

Task<std::expected<StoreTime, StoreError>> StoreDriver::now_of_lists() {
  const auto time = steps_.now();
  if (!time) co_return std::unexpected(unknown_time());
  co_return *time;
}

// By the present generation, so that none begins after the close of a store that was copied.
Task<std::optional<Subject>> StoreDriver::claiming() {
  auto asking = identity_.claiming_generation();
  const auto generation = co_await std::move(asking);
  if (!generation) co_return std::nullopt;
  co_return Subject{.generation = *generation, .needs_request = true};
}

Task<DueResult> StoreDriver::due(Work work, StoreTime now, std::size_t limit) {
  if (work == Work::claim) return scans_.claimable(now, limit);
  const auto states = work == Work::sweep
                          ? std::vector{State::pending, State::in_progress}
                          : std::vector{State::completed, State::failed_retryable, State::expired};
  std::string lists;
  for (const State state : states) lists += list_of(state);
  return scans_.due(std::move(lists), now, limit);
}

Task<StoreResult> StoreDriver::read_evidence(RecordId id) {
  auto reading = steps_.evidence_of(id);
  auto log = co_await std::move(reading);
  co_return compare_and_set::to_result(std::move(log));
}

Task<StoreResult> StoreDriver::list(List verb) {
  const auto now = steps_.now();
  if (!now) co_return std::unexpected(unknown_time());
  auto listing = scans_.list(std::move(verb), *now);
  auto records = co_await std::move(listing);
  co_return compare_and_set::to_result(std::move(records));
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

// Each pass also removes the orphans of one bucket.
Task<StoreResult> StoreDriver::sweep(std::size_t limit) {
  if (const auto now = steps_.now()) {
    Task<void> cleaning = pieces_.sweep(next_bucket_, *now);
    co_await std::move(cleaning);
    next_bucket_ = (next_bucket_ + 1) % bucket_count;
  }
  Task<StoreResult> sweeping = lifecycle(Work::sweep, Sweep{1}, limit);
  co_return co_await std::move(sweeping);
}

Task<StoreResult> StoreDriver::reap(std::size_t limit) {
  const auto now = steps_.now();
  if (!now) co_return std::unexpected(unknown_time());
  auto looking = scans_.due(std::string(1, list_of_blanks), *now, limit);
  const auto blanks = co_await std::move(looking);
  if (!blanks) co_return std::unexpected(compare_and_set::of_reading(blanks.error()));
  for (const Due& blank : *blanks) {
    Task<void> ending = steps_.end_blank(blank.id);
    co_await std::move(ending);
  }
  Task<StoreResult> reaping = lifecycle(Work::reap, Reap{1}, limit);
  co_return co_await std::move(reaping);
}

}  // namespace idem::dynamodb
