#include "store/mysql/record_batch.hpp"

#include "store/verb_traits.hpp"

#include <idem/crash_point.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem::mysql {
namespace {

using Code = StoreError::Code;
using BatchProblem = std::optional<Undone>;

/// An owner's attempt was granted in a commit, unless it has a token alone: then the reply was
/// lost, and perhaps the reserve is not committed yet.
bool has_fence(const StoreCall& call) {
  return std::visit(
      [](const auto& verb) {
        if constexpr (requires { AttemptRef(verb.attempt).fence; }) {
          return AttemptRef(verb.attempt).fence.has_value();
        } else {
          return false;
        }
      },
      call);
}

Parts parts_of(const StoreCall& call) {
  if (traits_of(call).is_owners) return {.may_be_new = !has_fence(call)};
  return {.answer = true,
          .request = std::holds_alternative<Reseal>(call),
          .evidence =
              std::holds_alternative<CacheBust>(call) || std::holds_alternative<PutRecord>(call),
          .may_be_new = true};
}

CallResult held_result(const StoreCall& call) {
  if (const Reserve* reserve = reserve_in(call)) {
    return {ReserveOutcome(InProgress{limits::store_held_max, reserve->id}), true};
  }
  return {std::unexpected(StoreError{Code::unavailable, "another transaction holds the record"}),
          true};
}

CallResult uncounted() {
  return {
      std::unexpected(StoreError{Code::unavailable, "another transaction counts the scope's keys"}),
      true};
}

CallResult without_identity() {
  return {std::unexpected(StoreError{Code::unavailable, "the store has lost its identity"})};
}

/// The statements before are sent back; nothing is written.
Task<void> roll_back(Connection& connection) {
  if (!connection.is_open()) co_return;
  auto undoing = connection.run("ROLLBACK", limits::store_reply_max);
  const QueryResult undone = co_await std::move(undoing);
  if (!undone) connection.close();
}

/// Begins the transaction, and reads.
Task<BatchProblem> lock(Connection& connection, LockedRecords& records) {
  auto reading = connection.run(records.reading(), limits::store_reply_max);
  const QueryResult results = co_await std::move(reading);
  Failure failure;
  if (results) {
    const auto understood = records.read(*results);
    if (understood && !records.is_read_only()) co_return std::nullopt;
    Task<void> undoing = roll_back(connection);
    co_await std::move(undoing);
    if (!understood) {
      connection.close();
      co_return Undone{{0, understood.error()}};
    }
    co_return Undone{{0, "the server accepts no writes any more (read_only)"}, true};
  }
  failure = results.error();
  failure.in_doubt = false;  // Nothing was to be written.
  Task<void> undoing = roll_back(connection);
  co_await std::move(undoing);
  co_return Undone{std::move(failure)};
}

/// Reads what the first statements left open.
Task<BatchProblem> read_parts(Connection& connection, LockedRecords& records) {
  if (std::string looking = records.looking_for_missing(); !looking.empty()) {
    auto reading = connection.run(std::move(looking), limits::store_reply_max);
    const QueryResult results = co_await std::move(reading);
    if (!results) {
      Failure failure = results.error();
      failure.in_doubt = false;
      Task<void> undoing = roll_back(connection);
      co_await std::move(undoing);
      co_return Undone{std::move(failure)};
    }
    records.read_missing(*results);
  }
  for (std::string text = records.reading_parts(); !text.empty(); text = records.reading_parts()) {
    auto reading = connection.run(std::move(text), limits::store_reply_max);
    const QueryResult results = co_await std::move(reading);
    if (results) {
      records.read_parts(*results);
      continue;
    }
    Failure failure = results.error();
    failure.in_doubt = false;
    Task<void> undoing = roll_back(connection);
    co_await std::move(undoing);
    co_return Undone{std::move(failure)};
  }
  co_return std::nullopt;
}

Task<BatchProblem> commit(Terms terms, const LockedRecords& records) {
  Connection& connection = terms.connection;
  if (!records.writes()) {
    auto ending = connection.run("COMMIT", limits::store_reply_max);
    const QueryResult ended = co_await std::move(ending);
    // What was read stays true.
    if (!ended) connection.close();
    co_return std::nullopt;
  }
  std::string text = records.writing();
  // The server takes one byte for the command.
  if (text.size() + 1 > terms.packet_max) {
    Task<void> undoing = roll_back(connection);
    co_await std::move(undoing);
    co_return Undone{
        {1, "the answer or request does not fit into max_allowed_packet"}, false, true};
  }
  auto writing = connection.run(std::move(text), limits::store_reply_max);
  const QueryResult written = co_await std::move(writing);
  if (written) co_return std::nullopt;
  Failure failure = written.error();
  if (failure.executed + 1 == records.written_statements()) {
    failure = commit_failed(connection, failure);
  }
  Task<void> undoing = roll_back(connection);
  co_await std::move(undoing);
  co_return Undone{std::move(failure)};
}

/// Among the calls, those that matter for a crash point.
struct Passing {
  bool reserves = false;
  bool settles = false;

  void before() const {
    if (reserves) crash_point(CrashPoint::reserve_before_commit);
    if (settles) crash_point(CrashPoint::settle_before_commit);
  }
  void after() const {
    if (reserves) crash_point(CrashPoint::reserve_after_commit);
    if (settles) crash_point(CrashPoint::settle_after_commit);
  }
};

}  // namespace

Task<Committed> make_steps(Terms terms, const std::vector<Waiting>& calls) {
  LockedRecords records;
  Passing passing;
  for (const Waiting& one : calls) {
    for (const RecordId& id : records_of(one.call)) records.want(id, parts_of(one.call));
    passing.settles |= traits_of(one.call).ends_attempt;
    if (std::holds_alternative<PutRecord>(one.call)) records.want_generation();
    const Reserve* const reserve = reserve_in(one.call);
    if (reserve == nullptr) continue;
    passing.reserves = true;
    records.want_generation();
    if (reserve->quota) records.want_usage(reserve->scope, counts_alone(*reserve));
  }
  auto locking = lock(terms.connection, records);
  BatchProblem problem = co_await std::move(locking);
  if (problem) co_return std::unexpected(std::move(*problem));
  auto reading = read_parts(terms.connection, records);
  problem = co_await std::move(reading);
  if (problem) co_return std::unexpected(std::move(*problem));
  std::vector<CallResult> results;
  for (const Waiting& one : calls) {
    const std::vector<RecordId> ids = records_of(one.call);
    const Reserve* const reserve = reserve_in(one.call);
    if (std::ranges::any_of(ids, [&](const RecordId& id) { return records.is_held(id); })) {
      results.push_back(held_result(one.call));
    } else if (reserve != nullptr && !records.generation()) {
      results.push_back(without_identity());
    } else if (reserve != nullptr && counts_alone(*reserve) &&
               records.is_scope_held(reserve->scope)) {
      results.push_back(uncounted());
    } else {
      const std::string scope = reserve != nullptr ? reserve->scope : std::string();
      StoreResult result = records.step(one.call, ids, scope, terms.last_fence);
      results.push_back({std::move(result), false, records.ended_a_lease()});
    }
  }
  passing.before();
  auto committing = commit(terms, records);
  problem = co_await std::move(committing);
  if (problem) co_return std::unexpected(std::move(*problem));
  passing.after();
  co_return results;
}

Task<Committed> make_lifecycle_steps(Terms terms, StoreCall one, std::vector<RecordId> due) {
  LockedRecords records;
  for (const RecordId& id : due) records.want(id);
  auto locking = lock(terms.connection, records);
  BatchProblem problem = co_await std::move(locking);
  if (problem) co_return std::unexpected(std::move(*problem));
  records.hold_missing();
  std::vector<LifecycleStep> steps;
  for (const RecordId& id : due) {
    if (records.is_held(id)) continue;
    StoreResult result = records.step(one, {&id, 1}, {}, terms.last_fence);
    if (!result) continue;
    for (LifecycleStep& step : std::get<std::vector<LifecycleStep>>(*result)) {
      if (step.damaged) records.hide_from_lifecycle(id);
      steps.push_back(step);
    }
  }
  auto committing = commit(terms, records);
  problem = co_await std::move(committing);
  if (problem) co_return std::unexpected(std::move(*problem));
  std::vector<CallResult> results;
  results.push_back({StoreReply(std::move(steps))});
  co_return results;
}

// One at a time: a record that is locked here is not claimable for others.
Task<Committed> make_claim(Terms terms, const StoreCall& claim, std::vector<RecordId> due) {
  std::vector<CallResult> results;
  for (const RecordId& id : due) {
    LockedRecords records;
    records.want(id, {.request = true});
    records.want_generation();
    auto locking = lock(terms.connection, records);
    BatchProblem problem = co_await std::move(locking);
    if (problem) co_return std::unexpected(std::move(*problem));
    auto reading = read_parts(terms.connection, records);
    problem = co_await std::move(reading);
    if (problem) co_return std::unexpected(std::move(*problem));
    StoreResult result = StoreReply(std::optional<Claimed>());
    if (!records.is_held(id) && !records.is_marked()) {
      result = records.step(claim, {&id, 1}, {}, terms.last_fence);
      if (!result || !records.has(id)) records.hide_from_claims(id);
    }
    auto committing = commit(terms, records);
    problem = co_await std::move(committing);
    if (problem) co_return std::unexpected(std::move(*problem));
    if (!result || std::get<std::optional<Claimed>>(*result)) {
      results.push_back({std::move(result)});
      co_return results;
    }
    // A COMMIT of what was only read may have lost it.
    if (!terms.connection.is_open()) {
      co_return std::unexpected(Undone{{0, "the connection was lost"}});
    }
  }
  results.push_back({StoreReply(std::optional<Claimed>())});
  co_return results;
}

}  // namespace idem::mysql
