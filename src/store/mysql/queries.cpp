#include "store/mysql/queries.hpp"

#include "core/transitions/record_table.hpp"
#include "core/transitions/transitions.hpp"
#include "store/mysql/row.hpp"
#include "store/mysql/sql_text.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <map>

namespace idem::mysql {
namespace {

constexpr std::size_t slot_width = 34;  ///< Of slot_columns.

/// The record of a row with its parts behind slot_columns.
StoreResult whole_record(const Rows& rows, std::size_t row, StoreTime now) {
  auto slot = read_slot(rows, row);
  if (!slot) return StoreReply(std::optional<Record>());
  if (!slot->record) return std::unexpected(std::move(slot->record.error()));
  Record& record = *slot->record;
  auto sound = read_answer(rows, row, slot_width, record);
  if (sound) sound = read_request(rows, row, slot_width + 3, record);
  if (!sound) return std::unexpected(damaged(slot->id, sound.error()));
  return StoreReply(transitions::view(std::move(record), now));
}

/// What a listing can leave to the server. A completed record past its expiry reads as expired.
void append_conditions(const List& verb, SqlText& sql) {
  if (verb.after) sql.sql(" AND id > ").hex(verb.after->bytes);
  if (verb.state == State::expired) sql.sql(" AND state IN (3, 6)");
  if (verb.state && verb.state != State::expired) {
    sql.sql(" AND state = ").number(static_cast<int>(*verb.state));
  }
  if (verb.scope) sql.sql(" AND scope = ").bytes(*verb.scope);
  if (verb.operation) sql.sql(" AND operation = ").bytes(*verb.operation);
  if (verb.created_before) sql.sql(" AND created_at < ").moment(*verb.created_before);
}

constexpr std::size_t scopes_tidied_max = 100;

/// Of one scope: rows that add up to nothing may go, whatever the others hold that are locked now.
std::string usage_rows_of(std::string_view scope) {
  std::string sql = "START TRANSACTION; SELECT session, active, bytes, next_key <= @idem_micros";
  SqlText(sql)
      .sql(" FROM idem_usage FORCE INDEX (PRIMARY) WHERE scope = ")
      .bytes(scope)
      .sql(" FOR UPDATE SKIP LOCKED");
  return sql;
}

std::string drop_usage_rows(std::string_view scope, const Rows& rows) {
  std::int64_t active = 0;
  std::int64_t bytes = 0;
  bool is_over = rows.size() > 0;
  std::string sessions;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    active += to_number(rows.cell(row, 1));
    bytes += to_number(rows.cell(row, 2));
    is_over = is_over && to_number(rows.cell(row, 3)) == 1;
    SqlText(sessions)
        .sql(row == 0 ? "SELECT " : " UNION ALL SELECT ")
        .number(to_unsigned(rows.cell(row, 0)))
        .sql(" AS session");
  }
  if (!is_over || active != 0 || bytes != 0) return "COMMIT";
  std::string sql = "DELETE u FROM (" + sessions;
  SqlText(sql)
      .sql(") k STRAIGHT_JOIN idem_usage u FORCE INDEX (PRIMARY) ON u.scope = ")
      .bytes(scope)
      .sql(" AND u.session = k.session; COMMIT");
  return sql;
}

/// States of which there are few records at a time, so that their index is the way to them.
bool is_rare(std::optional<State> state) {
  return state && *state != State::completed && *state != State::expired;
}

std::string due_in(int state) {
  return "(SELECT id, due_at FROM idem_slots FORCE INDEX (idem_due) WHERE state = " +
         std::to_string(state) + " AND due_at <= @idem_now ORDER BY due_at, id LIMIT @@)";
}

std::string due_text(Due what, std::size_t limit) {
  std::string text;
  switch (what) {
    case Due::sweep:
      text = due_in(1) + " UNION ALL " + due_in(2) + " ORDER BY due_at, id LIMIT @@";
      break;
    case Due::reap:
      text = due_in(3) + " UNION ALL " + due_in(4) + " UNION ALL " + due_in(6) +
             " ORDER BY due_at, id LIMIT @@";
      break;
    case Due::claim:
      // A request past its expiry is the sweeper's. A damaged record has no expiry to trust, and a
      // missing one is found by its step.
      text =
          "SELECT w.id FROM idem_waiting w LEFT JOIN idem_slots s ON s.id = w.id"
          " WHERE w.claim_at <= @idem_now AND (s.expires_at IS NULL OR s.expires_at > @idem_now)"
          " ORDER BY w.claim_at, w.id LIMIT @@";
      break;
  }
  const std::string number = std::to_string(limit);
  for (auto at = text.find("@@"); at != text.npos; at = text.find("@@")) {
    text.replace(at, 2, number);
  }
  return "SET @idem_now = idem_now(); " + text;
}

}  // namespace

Task<std::expected<std::vector<StoreResult>, Failure>> find_many(Connection& connection,
                                                                 std::vector<RecordId> ids) {
  std::string sql = "SELECT idem_now(); SELECT ";
  SqlText(sql)
      .sql(slot_columns)
      .sql(", ")
      .sql(answer_columns)
      .sql(", ")
      .sql(request_columns)
      .sql(" FROM idem_slots FORCE INDEX (PRIMARY) WHERE id IN (")
      .ids(ids)
      .sql(")");
  auto asking = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(answer.error());
  const StoreTime now = to_moment(answer->front().cell(0, 0));
  const Rows& rows = answer->back();
  std::map<RecordId, std::size_t> places;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (const auto id = to_id(rows.cell(row, 0))) places.emplace(*id, row);
  }
  std::vector<StoreResult> found;
  for (const RecordId& id : ids) {
    const auto place = places.find(id);
    found.push_back(place == places.end() ? StoreResult(std::optional<Record>())
                                          : whole_record(rows, place->second, now));
  }
  co_return found;
}

Task<Answer> list(Connection& connection, List verb) {
  std::vector<Record> found;
  while (found.size() < verb.limit) {
    std::string sql = "SELECT idem_now(); SELECT ";
    SqlText text(sql);
    text.sql(slot_columns).sql(" FROM idem_slots");
    if (is_rare(verb.state)) text.sql(" FORCE INDEX (idem_due)");
    text.sql(" WHERE TRUE");
    append_conditions(verb, text);
    text.sql(" ORDER BY id LIMIT ").number(limits::list_slice_rows);
    auto asking = connection.run(std::move(sql), limits::store_reply_max);
    const QueryResult answer = co_await std::move(asking);
    if (!answer) co_return std::unexpected(answer.error());
    const StoreTime now = to_moment(answer->front().cell(0, 0));
    const Rows& rows = answer->back();
    for (std::size_t row = 0; row < rows.size() && found.size() < verb.limit; ++row) {
      verb.after = to_id(rows.cell(row, 0));
      auto slot = read_slot(rows, row);
      if (!slot) continue;
      Record listed =
          slot->record ? without_bodies(std::move(*slot->record)) : damaged_row(slot->id);
      auto record = transitions::view(std::move(listed), now);
      if (record && is_listed(verb, *record)) found.push_back(std::move(*record));
    }
    if (rows.size() < limits::list_slice_rows) break;
  }
  co_return StoreResult(std::move(found));
}

Task<Answer> count(Connection& connection) {
  auto asking = connection.run(
      "SELECT state, COUNT(*) FROM idem_slots GROUP BY state;"
      "SELECT MIN(changed_at), idem_now() FROM idem_slots FORCE INDEX (idem_due) WHERE state = 5",
      limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(answer.error());
  Census census;
  const Rows& states = answer->front();
  for (std::size_t row = 0; row < states.size(); ++row) {
    const auto state = to_unsigned(states.cell(row, 0));
    if (state < census.by_state.size()) census.by_state[state] = to_unsigned(states.cell(row, 1));
  }
  const Rows& unknown = answer->back();
  if (!unknown.is_null(0, 0)) census.oldest_unknown = to_moment(unknown.cell(0, 0));
  census.now = to_moment(unknown.cell(0, 1));
  co_return StoreResult(census);
}

Task<Answer> read_evidence_of(Connection& connection, RecordId id) {
  std::string sql;
  SqlText(sql)
      .sql("SELECT entry FROM idem_evidence WHERE id = ")
      .hex(id.bytes)
      .sql(" ORDER BY line");
  auto asking = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(answer.error());
  std::vector<EvidenceEntry> entries;
  const Rows& rows = answer->front();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    auto entry = read_evidence(id, rows.cell(row, 0));
    if (!entry) co_return StoreResult(std::unexpected(std::move(entry.error())));
    entries.push_back(std::move(*entry));
  }
  co_return StoreResult(std::move(entries));
}

Task<std::expected<std::vector<RecordId>, Failure>> due(Connection& connection, Due what,
                                                        std::size_t limit) {
  auto asking = connection.run(due_text(what, limit), limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(answer.error());
  std::vector<RecordId> ids;
  const Rows& rows = answer->front();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (const auto id = to_id(rows.cell(row, 0))) ids.push_back(*id);
  }
  co_return ids;
}

Task<std::expected<void, Failure>> tidy_usage(Connection& connection) {
  auto looking = connection.run(
      "SET @idem_micros = idem_now() * 1000; SELECT scope FROM idem_usage GROUP BY scope"
      " HAVING SUM(active) = 0 AND SUM(bytes) = 0 AND MAX(next_key) <= @idem_micros"
      " LIMIT " +
          std::to_string(scopes_tidied_max),
      limits::store_reply_max);
  const QueryResult idle = co_await std::move(looking);
  if (!idle) co_return std::unexpected(idle.error());
  const Rows& scopes = idle->front();
  for (std::size_t row = 0; row < scopes.size(); ++row) {
    auto locking = connection.run(usage_rows_of(scopes.cell(row, 0)), limits::store_reply_max);
    const QueryResult locked = co_await std::move(locking);
    if (!locked) co_return std::unexpected(locked.error());
    auto dropping = connection.run(drop_usage_rows(scopes.cell(row, 0), locked->front()),
                                   limits::store_reply_max);
    const QueryResult dropped = co_await std::move(dropping);
    if (!dropped) co_return std::unexpected(dropped.error());
  }
  co_return std::expected<void, Failure>();
}

Task<std::expected<std::vector<std::pair<RecordId, WaitedState>>, Failure>> waited_states(
    Connection& connection, std::vector<RecordId> ids) {
  std::string sql;
  SqlText(sql)
      .sql(
          "SELECT id, state, fence, locked_until FROM idem_slots FORCE INDEX (PRIMARY)"
          " WHERE id IN (")
      .ids(ids)
      .sql(")");
  auto asking = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(answer.error());
  std::vector<std::pair<RecordId, WaitedState>> states;
  const Rows& rows = answer->front();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto id = to_id(rows.cell(row, 0));
    if (!id) continue;
    states.emplace_back(*id,
                        WaitedState{std::string(rows.cell(row, 1)), std::string(rows.cell(row, 2)),
                                    std::string(rows.cell(row, 3))});
  }
  co_return states;
}

}  // namespace idem::mysql
