#include "store/mysql/locked_records.hpp"
#include "store/mysql/row.hpp"
#include "store/mysql/sql_text.hpp"
#include "store/mysql/statements.hpp"

#include <algorithm>
#include <array>

namespace idem::mysql {
namespace {

bool is_pending(const std::optional<Record>& record) {
  return record && record->state == State::pending;
}

}  // namespace

bool LockedRecords::writes() const noexcept {
  return erased_fence_ != 0 || !evidence_.empty() || !not_due_.empty() || !not_claimable_.empty() ||
         std::ranges::any_of(entries_, [](const auto& one) { return one.second.is_changed; }) ||
         std::ranges::any_of(scopes_, [](const auto& one) { return !one.second.change.is_none(); });
}

std::string LockedRecords::writing() const {
  Statements to;
  write_records(to);
  write_waiting(to);
  if (!evidence_.empty()) {
    auto sql = to.next("INSERT INTO idem_evidence (id, entry) VALUES ");
    const char* before = "(";
    for (const auto& [id, entry] : evidence_) {
      sql.sql(before).hex(id.bytes).sql(", ").bytes(to_evidence_value(id, entry)).sql(")");
      before = ", (";
    }
  }
  write_usage(to);
  write_fence(to);
  to.next("COMMIT");
  written_statements_ = to.count;
  return std::move(to.text);
}

/// A row that is to be written.
struct LockedRecords::Written {
  const Record& record;
  const SlotCells* before;  ///< Null: it is new, or not known.
  bool has_new_response;
  bool has_new_request;
  SlotCells now{record};

  /// Whether a statement must name this column for this row.
  bool needs(std::size_t column, bool inserts) const {
    if (inserts) return now[column] != slot_default(column);
    return before == nullptr || now[column] != (*before)[column];
  }
};

// New rows in a statement of their own: another transaction may have made one meanwhile, and then
// the statement must fail. All other rows are locked. Those that change an answer or a request have
// statements apart, because the others must leave theirs as it is.
void LockedRecords::write_records(Statements& to) const {
  std::vector<Written> made;
  std::array<std::vector<Written>, 4> changed;
  std::vector<RecordId> gone;
  for (const auto& [id, entry] : entries_) {
    if (!entry.is_changed || !entry.now) continue;
    if (!*entry.now) {
      if (entry.was_there) gone.push_back(id);
      continue;
    }
    const Record& record = **entry.now;
    if (!entry.was_there) {
      made.push_back(
          {record, nullptr, record.response.has_value(), record.stored_request.has_value()});
      continue;
    }
    auto& group = changed[(entry.has_new_response ? 1U : 0U) + (entry.has_new_request ? 2U : 0U)];
    group.push_back({record, entry.read ? &*entry.read : nullptr, entry.has_new_response,
                     entry.has_new_request});
  }
  write_rows(to, made, true);
  for (const auto& group : changed) write_rows(to, group, false);
  to.erase("idem_slots", gone);
  if (not_due_.empty()) return;
  const std::vector<RecordId> hidden(not_due_.begin(), not_due_.end());
  to.next("UPDATE idem_slots FORCE INDEX (PRIMARY) SET due_at = ")
      .number(never_due)
      .sql(" WHERE id IN (")
      .ids(hidden)
      .sql(")");
}

// A statement names the columns that at least one of its rows changes, because the server's time
// goes with the number of literals.
void LockedRecords::write_rows(Statements& to, std::span<const Written> rows, bool inserts) {
  if (rows.empty()) return;
  std::vector<std::size_t> named;
  for (std::size_t column = 0; column < slot_column_count; ++column) {
    const bool is_always = column == slot_id || column == slot_sum;
    const auto needs = [&](const Written& row) { return row.needs(column, inserts); };
    if (is_always || std::ranges::any_of(rows, needs)) named.push_back(column);
  }
  const bool answers = std::ranges::any_of(rows, &Written::has_new_response);
  const bool requests = std::ranges::any_of(rows, &Written::has_new_request);
  std::string names;
  std::string updates;
  const auto name = [&](std::string_view column) {
    ((names += names.empty() ? "" : ", ") += column);
    if (column == slot_column(slot_id)) return;
    (((updates += updates.empty() ? "" : ", ") += column) += " = VALUES(") += column;
    updates += ')';
  };
  for (const std::size_t column : named) name(slot_column(column));
  for (const std::string_view column : answer_column_names) {
    if (answers) name(column);
  }
  for (const std::string_view column : request_column_names) {
    if (requests) name(column);
  }
  auto sql = to.next("INSERT INTO idem_slots (").sql(names).sql(") VALUES\n");
  const char* before = "(";
  for (const Written& row : rows) {
    sql.sql(before);
    before = "),\n(";
    for (const std::size_t column : named) {
      sql.sql(column == slot_id ? "" : ", ").sql(row.now[column]);
    }
    if (answers) append_answer(row.record, to.text += ", ");
    if (requests) append_request(row.record, to.text += ", ");
  }
  sql.sql(")");
  if (!inserts) sql.sql("\nON DUPLICATE KEY UPDATE ").sql(updates);
}

void LockedRecords::write_waiting(Statements& to) const {
  std::vector<RecordId> gone(not_claimable_.begin(), not_claimable_.end());
  std::string waiting;
  for (const auto& [id, entry] : entries_) {
    if (!entry.is_changed || !entry.now) continue;
    const bool waits = is_pending(*entry.now);
    if (entry.was_pending && !waits) gone.push_back(id);
    if (!waits) continue;
    SqlText(waiting)
        .sql(waiting.empty() ? "(" : ", (")
        .hex(id.bytes)
        .sql(", ")
        .moment((*entry.now)->locked_until)
        .sql(")");
  }
  to.erase("idem_waiting", gone);
  if (waiting.empty()) return;
  to.next("INSERT INTO idem_waiting (id, claim_at) VALUES ")
      .sql(waiting)
      .sql(" ON DUPLICATE KEY UPDATE claim_at = VALUES(claim_at)");
}

void LockedRecords::write_usage(Statements& to) const {
  std::string rows;
  for (const auto& [scope, of] : scopes_) {
    if (of.change.is_none()) continue;
    const auto next_key = of.change.next_key.value_or(std::chrono::microseconds(0));
    SqlText(rows)
        .sql(rows.empty() ? "(" : ", (")
        .bytes(scope)
        .sql(", 1 + CONNECTION_ID() % 32, ")
        .number(of.change.active)
        .sql(", ")
        .number(of.change.bytes)
        .sql(", ")
        .number(next_key.count())
        .sql(")");
  }
  if (rows.empty()) return;
  to.next("INSERT INTO idem_usage (scope, session, active, bytes, next_key) VALUES ")
      .sql(rows)
      .sql(
          " ON DUPLICATE KEY UPDATE active = active + VALUES(active),"
          " bytes = bytes + VALUES(bytes), next_key = GREATEST(next_key, VALUES(next_key))");
}

// Between the reading and this, another node may have made, ended and erased the same record. Its
// fence is in idem_fence then, and ours must be above it: the primary key refuses the row that the
// second statement would make, and with it the transaction, which is made again.
void LockedRecords::write_fence(Statements& to) const {
  if (erased_fence_ != 0) {
    to.next("UPDATE idem_fence SET highest = GREATEST(highest, ")
        .number(erased_fence_)
        .sql(") WHERE one = 1");
  }
  if (!inserted_fence_) return;
  to.next(
        "INSERT INTO idem_fence (one, highest) SELECT one, highest FROM idem_fence"
        " WHERE one = 1 AND highest >= ")
      .number(*inserted_fence_);
}

}  // namespace idem::mysql
