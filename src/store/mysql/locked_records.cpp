#include "store/mysql/locked_records.hpp"

#include "core/transitions/store_steps.hpp"
#include "store/mysql/row.hpp"
#include "store/mysql/sql_text.hpp"
#include "store/mysql/statements.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::mysql {

using transitions::Write;

void LockedRecords::want(const RecordId& id, Parts parts) {
  Parts& all = entries_[id].parts;
  all.answer |= parts.answer;
  all.request |= parts.request;
  all.evidence |= parts.evidence;
  all.may_be_new |= parts.may_be_new;
}

void LockedRecords::want_usage(const std::string& scope, bool alone) {
  scopes_[scope].alone |= alone;
}

std::vector<RecordId> LockedRecords::ids() const {
  std::vector<RecordId> all;
  all.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) all.push_back(id);
  return all;
}

std::vector<RecordId> LockedRecords::new_ids() const {
  std::vector<RecordId> some;
  for (const auto& [id, entry] : entries_) {
    if (entry.parts.may_be_new) some.push_back(id);
  }
  return some;
}

std::string LockedRecords::scopes(bool alone_only) const {
  std::string list;
  for (const auto& [scope, of] : scopes_) {
    if (of.alone || !alone_only) SqlText(list).sql(list.empty() ? "" : ", ").bytes(scope);
  }
  return list;
}

// What READ UNCOMMITTED reads, other transactions need not have committed. A row that it saw and
// the locking SELECT does not return is held. A record whose attempt was granted is committed: only
// if it cannot be locked, one more statement looks for it (looking_for_missing). The row that a
// scope is counted under is made before the transaction begins, because an INSERT would wait for
// who has it; a gateway that stands still may have it for long, and the calls of other scopes in
// this batch would wait, too. Where the row is missing, MariaDB does not wait, and MySQL for a
// second, as its sessions do. The clock is read when nothing can wait any more. The primary key is
// forced: a scan of a small table would lock rows of others for a moment, and they would seem to be
// held.
std::string LockedRecords::reading() const {
  Statements to;
  const std::string alone = scopes(true);
  if (!alone.empty()) {
    to.next("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    auto sql = to.next(
        "/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ INSERT IGNORE INTO idem_usage "
        "SELECT k.scope, 0, 0, 0, 0 FROM (");
    const char* between = "SELECT ";
    for (const auto& [scope, of] : scopes_) {
      if (!of.alone) continue;
      sql.sql(between).bytes(scope).sql(" AS scope");
      between = " UNION ALL SELECT ";
    }
    sql.sql(
        ") k WHERE NOT EXISTS (SELECT 1 FROM idem_usage u WHERE u.scope = k.scope AND u.session = "
        "0)");
  }
  if (const auto some = new_ids(); !some.empty()) {
    to.next("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    to.next("SELECT id FROM idem_slots FORCE INDEX (PRIMARY) WHERE id IN (").ids(some).sql(")");
  }
  to.next("START TRANSACTION");
  if (!alone.empty()) {
    to.next("SELECT scope FROM idem_usage FORCE INDEX (PRIMARY) WHERE session = 0 AND scope IN (")
        .sql(alone)
        .sql(") FOR UPDATE SKIP LOCKED");
  }
  if (wants_generation_) {
    to.next("SELECT generation, by_operation FROM idem_identity WHERE one = 1 LOCK IN SHARE MODE");
  }
  to.next("SELECT ")
      .sql(slot_columns)
      .sql(" FROM idem_slots FORCE INDEX (PRIMARY) WHERE id IN (")
      .ids(ids())
      .sql(") FOR UPDATE SKIP LOCKED");
  if (!scopes_.empty()) {
    to.next("SELECT scope, SUM(active), SUM(bytes), MAX(next_key) FROM idem_usage WHERE scope IN (")
        .sql(scopes(false))
        .sql(") GROUP BY scope");
  }
  to.next("SELECT idem_now(), highest, @@GLOBAL.read_only FROM idem_fence WHERE one = 1");
  return to.text;
}

std::expected<void, std::string> LockedRecords::read(const Results& results) {
  const bool looked = !new_ids().empty();
  const bool counted =
      std::ranges::any_of(scopes_, [](const auto& one) { return one.second.alone; });
  const std::size_t expected = 2U + (looked ? 1 : 0) + (counted ? 1 : 0) +
                               (wants_generation_ ? 1 : 0) + (scopes_.empty() ? 0 : 1);
  if (results.size() != expected) return std::unexpected("the server's reply is unknown");
  std::size_t next = 0;
  if (looked) hold(results[next++]);
  if (counted) {
    const Rows& locked = results[next++];
    for (std::size_t row = 0; row < locked.size(); ++row) {
      const auto of = scopes_.find(std::string(locked.cell(row, 0)));
      if (of != scopes_.end()) of->second.is_locked = true;
    }
  }
  if (wants_generation_) {
    const Rows& identity = results[next++];
    if (identity.size() == 1) {
      generation_ = to_unsigned(identity.cell(0, 0));
      is_marked_ = to_unsigned(identity.cell(0, 1)) == 2;
    }
  }
  const Rows& slots = results[next++];
  for (std::size_t row = 0; row < slots.size(); ++row) {
    auto slot = read_slot(slots, row);
    const auto entry = slot ? entries_.find(slot->id) : entries_.end();
    if (entry == entries_.end()) continue;
    held_.erase(slot->id);
    Entry& of = entry->second;
    of.was_there = true;
    if (!slot->record) {
      of.now = std::unexpected(std::move(slot->record.error()));
      continue;
    }
    of.was_pending = slot->record->state == State::pending;
    of.now = std::move(*slot->record);
  }
  for (const auto& [id, entry] : entries_) {
    if (!entry.was_there && !entry.parts.may_be_new) missing_.push_back(id);
    const bool is_known = entry.was_there && entry.now && *entry.now;
    const bool has_answer = is_known && (*entry.now)->response && entry.parts.answer;
    const bool has_request = is_known && (*entry.now)->stored_request && entry.parts.request;
    if (has_answer || has_request || entry.parts.evidence) unread_.push_back(id);
  }
  if (!scopes_.empty()) {
    const Rows& usage = results[next++];
    for (std::size_t row = 0; row < usage.size(); ++row) {
      const auto of = scopes_.find(std::string(usage.cell(row, 0)));
      if (of == scopes_.end()) continue;
      of->second.usage.active = plus(0, to_number(usage.cell(row, 1)));
      of->second.usage.bytes = plus(0, to_number(usage.cell(row, 2)));
      of->second.usage.next_key = std::chrono::microseconds(to_number(usage.cell(row, 3)));
    }
  }
  const Rows& clock = results[next];
  if (clock.size() != 1) return std::unexpected("the table idem_fence has lost its row");
  now_ = to_moment(clock.cell(0, 0));
  const auto micros = std::chrono::microseconds(now_.time_since_epoch()).count();
  fence_before_ = std::max(static_cast<Fence>(micros), to_unsigned(clock.cell(0, 1)));
  const auto read_only = clock.cell(0, 2);
  is_read_only_ = read_only != "0" && read_only != "OFF";
  return {};
}

void LockedRecords::hold(const Rows& ids) {
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (const auto id = to_id(ids.cell(row, 0))) held_.insert(*id);
  }
}

std::string LockedRecords::looking_for_missing() const {
  if (missing_.empty()) return {};
  Statements to;
  to.next("SELECT id FROM idem_slots FORCE INDEX (PRIMARY) WHERE id IN (").ids(missing_).sql(")");
  return to.text;
}

void LockedRecords::read_missing(const Results& results) {
  hold(results.front());
  missing_.clear();
}

void LockedRecords::hold_missing() {
  held_.insert(missing_.begin(), missing_.end());
  missing_.clear();
}

// Answers may be large: a few at a time.
std::string LockedRecords::reading_parts() {
  if (unread_.empty()) return {};
  const std::size_t count = std::min(unread_.size(), limits::store_statement_finds_max);
  const std::span<const RecordId> slice(unread_.data() + unread_.size() - count, count);
  Statements to;
  to.next("SELECT id, ")
      .sql(answer_columns)
      .sql(", ")
      .sql(request_columns)
      .sql(" FROM idem_slots FORCE INDEX (PRIMARY) WHERE id IN (")
      .ids(slice)
      .sql(")");
  std::vector<RecordId> logged;
  for (const RecordId& id : slice) {
    if (entries_[id].parts.evidence) logged.push_back(id);
  }
  if (!logged.empty()) {
    to.next("SELECT id, entry FROM idem_evidence WHERE id IN (")
        .ids(logged)
        .sql(") ORDER BY id, line");
  }
  unread_.resize(unread_.size() - count);
  return to.text;
}

void LockedRecords::read_parts(const Results& results) {
  const Rows& parts = results.front();
  for (std::size_t row = 0; row < parts.size(); ++row) {
    const auto id = to_id(parts.cell(row, 0));
    const auto entry = id ? entries_.find(*id) : entries_.end();
    if (entry == entries_.end() || !entry->second.now || !*entry->second.now) continue;
    Entry& of = entry->second;
    Record& record = **of.now;
    std::expected<void, std::string_view> sound;
    if (of.parts.answer) sound = read_answer(parts, row, 1, record);
    if (sound && of.parts.request) sound = read_request(parts, row, 4, record);
    if (!sound) of.now = std::unexpected(damaged(*id, sound.error()));
  }
  if (results.size() < 2) return;
  const Rows& lines = results[1];
  for (std::size_t row = 0; row < lines.size(); ++row) {
    const auto id = to_id(lines.cell(row, 0));
    const auto entry = id ? entries_.find(*id) : entries_.end();
    if (entry == entries_.end()) continue;
    auto line = read_evidence(*id, lines.cell(row, 1));
    if (line) {
      entry->second.log.push_back(std::move(*line));
    } else {
      entry->second.log_error = std::move(line.error());
    }
  }
}

bool LockedRecords::has(const RecordId& id) const {
  const Entry& entry = entries_.at(id);
  return !entry.now || entry.now->has_value();
}

StoreResult LockedRecords::step(const StoreCall& call, std::span<const RecordId> ids,
                                const std::string& scope, Fence& last_fence) {
  SnapshotTable table;
  for (const RecordId& id : ids) {
    const Entry& entry = entries_.at(id);
    if (entry.log_error) return std::unexpected(*entry.log_error);
    table.put(id, entry.now);
    if (entry.parts.evidence) table.put_evidence(entry.log);
  }
  const auto of_scope = scopes_.find(scope);
  if (of_scope != scopes_.end()) table.put_usage(of_scope->second.usage);
  // Fences come from the clock, so that they grow also where records are gone; and above every one
  // that is known.
  transitions::FenceCounter fences{std::max({last_fence, fence_before_, table.highest_fence()})};
  Naming naming{.generation = generation_.value_or(0)};
  StoreCall made = call;
  StoreResult result = do_step(made, {table, fences, table, now_, naming});
  last_fence = std::max(last_fence, fences.last);
  ended_a_lease_ = table.ended_a_lease();
  const auto inserted = inserted_fence_;
  const Fence highest = table.highest_fence();
  if (result) apply(table.take_write());
  if (const auto* put = std::get_if<PutRecord>(&call); put && result) {
    inserted_fence_ = inserted;  // No attempt begins, and one may be gone.
    erased_fence_ = std::max({erased_fence_, put->fence_floor, highest});
  }
  return result;
}

void LockedRecords::apply(RecordWrite write) {
  if (write.is_empty()) return;
  Entry& entry = entries_.at(write.id);
  for (EvidenceEntry& line : write.evidence) {
    entry.log.push_back(line);
    evidence_.emplace_back(write.id, std::move(line));
  }
  const auto& subject = write.after ? write.after : write.before;
  if (!write.usage.is_none() && subject) {
    ScopeUsage& scope = scopes_[subject->scope];
    scope.usage.active = plus(scope.usage.active, write.usage.active);
    scope.usage.bytes = plus(scope.usage.bytes, write.usage.bytes);
    scope.change.active += write.usage.active;
    scope.change.bytes += write.usage.bytes;
    if (write.usage.next_key) {
      scope.usage.next_key = std::max(scope.usage.next_key, *write.usage.next_key);
      scope.change.next_key = scope.usage.next_key;
    }
  }
  if (write.change.write == Write::none) return;
  if (!entry.is_changed && entry.was_there && entry.now && *entry.now) {
    entry.read.emplace(**entry.now);
  }
  entry.is_changed = true;
  if (!write.after) {
    erased_fence_ = std::max(erased_fence_, write.before->fence().value_or(0));
    entry.now = std::nullopt;
    return;
  }
  const bool replaces = write.change.write == Write::insert;
  Record next = std::move(*write.after);
  if (replaces && next.attempt) {
    inserted_fence_ = std::min(inserted_fence_.value_or(next.attempt->fence), next.attempt->fence);
  }
  // A part that the step left alone is still the one that was read.
  std::optional<Record> before;
  if (entry.now && *entry.now) before = std::move(**entry.now);
  if (!write.change.response && before) next.response = std::move(before->response);
  if (!write.change.request && before) next.stored_request = std::move(before->stored_request);
  entry.has_new_response |= write.change.response || replaces;
  entry.has_new_request |= write.change.request || replaces;
  entry.now = std::move(next);
}

}  // namespace idem::mysql
