#include "store/sqlite/slot_table.hpp"

#include "core/bytes/checksum.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/sqlite/evidence_log.hpp"
#include "store/sqlite/journal_rows.hpp"
#include "store/sqlite/route_names.hpp"
#include "store/sqlite/usage_rows.hpp"
#include "store/sqlite/visit_records.hpp"

#include <idem/limits.hpp>

#include <array>
#include <limits>
#include <set>

namespace idem::sqlite {
namespace {

using embedded::IdIndex;

std::int64_t number(StoreTime moment) { return moment.time_since_epoch().count(); }

void bind_moment(Statement& statement, int at, const std::optional<StoreTime>& moment) {
  if (moment) {
    statement.bind(at, number(*moment));
  } else {
    statement.bind_null(at);
  }
}

/// Reads the column `state` at `state_at` and the column `record` behind it.
std::expected<Record, std::string_view> read_record(const RecordId& id, Statement& row,
                                                    int state_at) {
  auto record = decode_record(id, row.bytes(state_at + 1));
  if (!record) return record;
  if (row.integer(state_at) != static_cast<std::int64_t>(record->state)) {
    return std::unexpected("its state is not that of its row");
  }
  if (record->state == State::in_progress) {
    return std::unexpected("it is running, but among the settled records");
  }
  return record;
}

class Slots final : public SlotTable {
 public:
  Slots(sqlite3* db, IdIndex index)
      : db_(db), index_(std::move(index)), evidence_(db), journals_(db) {
    Statement last(db,
                   "SELECT max((SELECT coalesce(max(slot), 0) FROM idem_slots WHERE slot < ?1),"
                   " (SELECT coalesce(max(slot), 0) FROM idem_running WHERE slot < ?1))");
    last.bind(1, limits::row_numbers_end);
    const RowsEnd end(last);
    if (last.step()) last_place_ = last.integer(0);
  }

  Loaded load(const RecordId& id, Parts parts, StoreTime now) override {
    Statement& rows = parts == Parts::slot ? find_ : find_whole_;
    std::optional<Row> found;
    for (const std::int64_t place : places_of(id)) {
      rows.bind(1, place);
      if (!rows.step()) return std::unexpected(unreadable(id, "its row is missing"));
      const RowsEnd end(rows);
      // Two digests that begin alike are far less likely than a damaged row, which must not count
      // as absent: its work would run again.
      if (id_of(rows, 0) != id) return std::unexpected(unreadable(id, "its row has another id"));
      if (found)
        return std::unexpected(unreadable(id, "it is found twice among the settled records"));
      auto row = read_row(rows, {id, place}, parts, now);
      if (!row) return std::unexpected(std::move(row.error()));
      found = std::move(*row);
    }
    return found;
  }

  void insert(Record&& record) override {
    put_in({std::move(record)}, {transitions::Write::insert, true, true});
  }

  void put_in(const Row& row, const transitions::Change& change) override {
    const Record& record = row.record;
    const std::int64_t place = row.place != 0 ? row.place : ++last_place_;
    bind_row(insert_, place, record);
    insert_.bind_bytes(8, record.id.bytes);
    bind_answer(insert_, record);
    insert_.run();
    index_.insert(entry(record.id, place));
    if (change.request) change_request(row, place);
  }

  void take_out(const RecordId& id, std::int64_t place) override {
    drop(drop_slot_, place);
    index_.erase(entry(id, place));
  }

  std::expected<std::string, StoreError> request_of(const Row& row) override {
    request_.bind(1, row.place);
    if (!request_.step()) {
      return std::unexpected(unreadable(row.record.id, "its request is missing"));
    }
    const RowsEnd end(request_);
    const auto request = without_checksum(row.record.id, request_.bytes(0));
    if (!request) {
      return std::unexpected(unreadable(row.record.id, "its request's checksum does not match"));
    }
    return std::string(*request);
  }

  void drop_request(const RecordId&, std::int64_t place) override { drop(drop_request_, place); }

  void update(Row&& row, const transitions::Change& change) override {
    Statement& statement = change.response ? update_whole_ : update_;
    bind_row(statement, row.place, row.record);
    if (change.response) bind_answer(statement, row.record);
    statement.run();
    if (change.request) change_request(row, row.place);
  }

  void erase(const RecordId& id, std::int64_t place) override {
    take_out(id, place);
    drop(drop_request_, place);
  }

  bool holds_id(const RecordId& id) override {
    const auto found = load(id, Parts::slot, {});
    return !found || *found;
  }
  bool holds_place(std::int64_t place) override {
    place_.bind(1, place);
    const RowsEnd end(place_);
    return place_.step();
  }
  void leave_out(const RecordId& id) override { left_out_.insert(id); }

  std::vector<RecordId> due_for_sweep(StoreTime now, std::size_t limit) override {
    std::vector<RecordId> ids;
    const RowsEnd end(due_for_sweep_);
    bool is_there = step_due(due_for_sweep_, State::pending, now, limit);
    for (; is_there; is_there = due_for_sweep_.step()) ids.push_back(id_of(due_for_sweep_, 0));
    return ids;
  }

  std::vector<RecordId> due_for_reap(StoreTime now, std::size_t limit) override {
    std::vector<RecordId> ids;
    std::array<bool, reaped_states.size()> is_there{};
    for (std::size_t i = 0; i < reaped_states.size(); ++i) {
      is_there[i] = step_due(due_for_reap_[i], reaped_states[i], now, limit);
    }
    // Merged: a tombstone must not wait until no answer is due any more.
    while (ids.size() < limit) {
      std::optional<std::size_t> first;
      for (std::size_t i = 0; i < is_there.size(); ++i) {
        if (!is_there[i]) continue;
        if (!first || due_for_reap_[i].integer(1) < due_for_reap_[*first].integer(1)) first = i;
      }
      if (!first) break;
      ids.push_back(id_of(due_for_reap_[*first], 0));
      is_there[*first] = due_for_reap_[*first].step();
    }
    for (Statement& rows : due_for_reap_) rows.reset();
    return ids;
  }

  std::optional<RecordId> next_claimable(StoreTime now) override {
    claimable_.bind(1, number(now));
    if (!claimable_.step()) return std::nullopt;
    const RowsEnd end(claimable_);
    return id_of(claimable_, 0);
  }

  void hide_from_lifecycle(const RecordId& id) override {
    for (const std::int64_t place : places_of(id)) {
      hide_from_lifecycle_.bind(1, place);
      hide_from_lifecycle_.run();
    }
  }

  void hide_from_claims(const RecordId& id) override {
    for (const std::int64_t place : places_of(id)) {
      hide_from_claims_.bind(1, place);
      hide_from_claims_.bind(2, std::numeric_limits<std::int64_t>::max());
      hide_from_claims_.run();
    }
  }

  std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                               std::vector<Record>& found) override {
    Statement* const by_state = verb.state ? select_by_state(*verb.state) : nullptr;
    return by_state != nullptr ? list_by(*by_state, verb, now, rows_max, found)
                               : list_any(verb, now, rows_max, found);
  }

  void tally(Tallied& into) override {
    while (states_.step()) {
      const auto state = static_cast<std::size_t>(states_.integer(0));
      if (state < into.by_state.size()) {
        into.by_state[state] = static_cast<std::uint64_t>(states_.integer(1));
      }
    }
    while (unknowns_.step()) {
      const RecordId id = id_of(unknowns_, 0);
      const auto record = decode_record(id, unknowns_.bytes(1));
      if (record) into.add_unknown(record->changed_at, id);
    }
  }
  void visit(const std::function<bool(const Record*)>& see) override {
    visit_records(db_, see, settled_sql);
  }
  void save(const Naming& naming) override { write_naming(db_, naming); }

  Usage usage_of(const std::string& scope) override { return usage_.of(scope); }
  void add_usage(const std::string& scope, const UsageChange& change) override {
    usage_.add(scope, change);
  }
  void flush() override { usage_.flush(); }

  void append_evidence(const RecordId& id, const EvidenceEntry& entry) override {
    evidence_.append(id, entry);
  }
  Log evidence(const RecordId& id) override { return evidence_.read(id); }
  Journals* journals() override { return &journals_; }

 private:
  /// Cuts or pads an id of the wrong size: it only serves to look the row up again.
  static RecordId id_of(Statement& row, int at) {
    RecordId id;
    row.bytes(at).copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
    return id;
  }

  static IdIndex::Entry entry(const RecordId& id, std::int64_t place) {
    return {IdIndex::head_of(id), place};
  }

  /// The rows whose ids begin like this one: none or one, unless the file is damaged.
  std::span<const std::int64_t> places_of(const RecordId& id) {
    places_.clear();
    const std::uint64_t head = IdIndex::head_of(id);
    for (auto at = index_.first_from(head); at && at->head == head; at = index_.next(*at)) {
      places_.push_back(at->place);
    }
    return places_;
  }

  struct Whose {
    const RecordId& id;
    std::int64_t place;
  };

  /// Reads columns 1 to 4 of find_whole_, or those of them that `parts` needs.
  std::expected<Row, StoreError> read_row(Statement& rows, Whose whose, Parts parts,
                                          StoreTime now) {
    const RecordId& id = whose.id;
    auto record = read_record(id, rows, 1);
    if (!record) return std::unexpected(unreadable(id, record.error()));
    Row row{std::move(*record), whose.place};
    const bool answered =
        parts == Parts::all ||
        (parts == Parts::answer && transitions::state_at(row.record, now) == State::completed);
    if (answered && row.record.state == State::completed) {
      if (rows.is_null(3)) return std::unexpected(unreadable(id, "its answer is missing"));
      const std::string_view body = rows.bytes(4);
      auto response = decode_checked_answer(id, rows.bytes(3), body);
      if (!response) return std::unexpected(unreadable(id, response.error()));
      row.record.response = std::move(*response);
    }
    if (parts == Parts::all && row.record.stored_request) {
      auto request = request_of(row);
      if (!request) return std::unexpected(std::move(request.error()));
      row.record.stored_request = std::move(*request);
    }
    return row;
  }

  /// The statement that lists a state by its own index; null: the state has none.
  Statement* select_by_state(State state) {
    switch (state) {
      case State::pending:
        return &list_pending_;
      case State::failed_retryable:
        return &list_retryable_;
      case State::unknown:
        return &list_unknown_;
      case State::in_progress:
      case State::completed:
      case State::expired:
        return nullptr;
    }
    return nullptr;
  }

  std::optional<RecordId> list_by(Statement& rows, const List& verb, StoreTime now,
                                  std::size_t rows_max, std::vector<Record>& found) {
    const RowsEnd end(rows);
    const RecordId first;
    rows.bind_bytes(1, verb.after ? std::span<const std::uint8_t>(verb.after->bytes)
                                  : std::span(first.bytes).first(0));
    rows.bind(2, static_cast<std::int64_t>(rows_max));
    RecordId last;
    std::size_t seen = 0;
    for (; rows.step(); ++seen) {
      if (found.size() >= verb.limit) return std::nullopt;
      last = id_of(rows, 0);
      show(verb, now, rows, found);
    }
    return seen == rows_max ? std::optional(last) : std::nullopt;
  }

  /// The index has the records in the order of their ids. The index, not the rows, decides how far
  /// a slice has come, so that a damaged row cannot send it back.
  std::optional<RecordId> list_any(const List& verb, StoreTime now, std::size_t rows_max,
                                   std::vector<Record>& found) {
    auto at = index_.first_from(verb.after ? IdIndex::head_of(*verb.after) : 0);
    for (std::size_t seen = 0; at && found.size() < verb.limit; at = index_.next(*at)) {
      list_.bind(1, at->place);
      const RowsEnd end(list_);
      if (!list_.step()) continue;
      const RecordId id = id_of(list_, 0);
      const bool shown_before = verb.after && id <= *verb.after;
      if (IdIndex::head_of(id) == at->head && !shown_before) show(verb, now, list_, found);
      if (++seen == rows_max) return IdIndex::last_of(at->head);
    }
    return std::nullopt;
  }

  /// Parameters 1 to 5 of every statement that writes a row.
  void bind_row(Statement& s, std::int64_t place, const Record& record) {
    encode_record(record, record_bytes_);
    s.bind(1, place);
    s.bind(2, static_cast<std::int64_t>(record.state));
    bind_moment(s, 3, transitions::due_at(record));
    const bool waits = record.state == State::pending;
    bind_moment(s, 4, waits ? std::optional(record.locked_until) : std::nullopt);
    s.bind_blob(5, record_bytes_);
  }

  void bind_answer(Statement& s, const Record& record) {
    if (record.response) {
      encode_checked_answer(record.id, *record.response, answer_bytes_);
      s.bind_blob(6, answer_bytes_);
      s.bind_blob(7, record.response->body);
    } else {
      s.bind_null(6);
      s.bind_null(7);
    }
  }

  /// Appends the record of this row if `verb` asks for it and it can be read.
  void show(const List& verb, StoreTime now, Statement& rows, std::vector<Record>& found) {
    auto record = read_listed(rows, now);
    if (record && is_listed(verb, *record)) found.push_back(std::move(*record));
  }

  /// None: a listing does not show the row, because it counts as no record.
  std::optional<Record> read_listed(Statement& rows, StoreTime now) {
    const RecordId id = id_of(rows, 0);
    if (left_out_.contains(id)) return std::nullopt;
    auto record = read_record(id, rows, 1);
    if (!record) return damaged_row(id);
    if (record->state == State::completed) {
      if (auto status = decode_status(rows.bytes(3))) record->response = std::move(*status);
    }
    return transitions::view(std::move(*record), now);
  }

  void change_request(const Row& row, std::int64_t place) {
    if (!row.record.stored_request) {
      if (row.place != 0) drop(drop_request_, place);
      return;
    }
    request_bytes_ = *row.record.stored_request;
    append_checksum(row.record.id, request_bytes_);
    put_request_.bind(1, place);
    put_request_.bind_blob(2, request_bytes_);
    put_request_.run();
  }

  static void drop(Statement& statement, std::int64_t slot) {
    statement.bind(1, slot);
    statement.run();
  }

  /// Whether there is a first row, as step().
  static bool step_due(Statement& rows, State state, StoreTime now, std::size_t limit) {
    rows.bind(1, static_cast<std::int64_t>(state));
    rows.bind(2, number(now));
    rows.bind(3, static_cast<std::int64_t>(limit));
    return rows.step();
  }

  sqlite3* db_;
  Statement find_{db_, "SELECT id, state, record FROM idem_slots WHERE slot = ?1"};
  Statement find_whole_{db_,
                        "SELECT id, state, record, answer, body FROM idem_slots WHERE slot = ?1"};
  Statement place_{db_, "SELECT slot FROM idem_slots WHERE slot = ?1"};
  Statement insert_{
      db_,
      "INSERT INTO idem_slots (slot, state, due_at, claim_at, record, answer, body, id)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"};
  Statement update_{db_,
                    "UPDATE idem_slots SET state = ?2, due_at = ?3, claim_at = ?4, record = ?5"
                    " WHERE slot = ?1"};
  Statement update_whole_{
      db_,
      "UPDATE idem_slots SET state = ?2, due_at = ?3, claim_at = ?4, record = ?5,"
      " answer = ?6, body = ?7 WHERE slot = ?1"};
  Statement drop_slot_{db_, "DELETE FROM idem_slots WHERE slot = ?1"};
  Statement request_{db_, "SELECT request FROM idem_requests WHERE slot = ?1"};
  Statement put_request_{db_, "INSERT OR REPLACE INTO idem_requests VALUES (?1, ?2)"};
  Statement drop_request_{db_, "DELETE FROM idem_requests WHERE slot = ?1"};
  // The plus sign keeps SQLite from matching the state against the partial indexes; otherwise it
  // would plan the statement anew for each other state.
  static constexpr const char* due_sql =
      "SELECT id, due_at FROM idem_slots WHERE state = +?1 AND due_at <= ?2 ORDER BY due_at"
      " LIMIT ?3";
  static constexpr std::array reaped_states{State::completed, State::failed_retryable,
                                            State::expired};
  Statement due_for_sweep_{db_, due_sql};
  // One for each state, as they are read side by side.
  std::array<Statement, reaped_states.size()> due_for_reap_{
      Statement(db_, due_sql), Statement(db_, due_sql), Statement(db_, due_sql)};
  // due_at of a pending record is its expiry. Names the index: the planner would choose
  // slots_by_due, and sort.
  Statement claimable_{db_,
                       "SELECT id FROM idem_slots INDEXED BY slots_claimable WHERE state = 1"
                       " AND claim_at <= ?1 AND due_at > ?1 ORDER BY claim_at, id LIMIT 1"};
  Statement hide_from_lifecycle_{db_, "UPDATE idem_slots SET due_at = NULL WHERE slot = ?1"};
  Statement hide_from_claims_{db_, "UPDATE idem_slots SET claim_at = ?2 WHERE slot = ?1"};
  Statement list_{db_, "SELECT id, state, record, answer FROM idem_slots WHERE slot = ?1"};
  // Name the index, as above.
  Statement list_pending_{
      db_,
      "SELECT id, state, record, answer FROM idem_slots INDEXED BY slots_pending"
      " WHERE state = 1 AND id > ?1 ORDER BY id LIMIT ?2"};
  Statement list_retryable_{
      db_,
      "SELECT id, state, record, answer FROM idem_slots INDEXED BY slots_retryable"
      " WHERE state = 4 AND id > ?1 ORDER BY id LIMIT ?2"};
  Statement list_unknown_{
      db_,
      "SELECT id, state, record, answer FROM idem_slots INDEXED BY slots_unknown"
      " WHERE state = 5 AND id > ?1 ORDER BY id LIMIT ?2"};
  // Runs once at a start, over an index: a third of a second for a million records on a busy
  // machine.
  Statement states_{db_, "SELECT state, count(*) FROM idem_slots GROUP BY state"};
  Statement unknowns_{db_, "SELECT id, record FROM idem_slots WHERE state = 5"};
  IdIndex index_;
  UsageRows usage_{db_};
  std::vector<std::int64_t> places_;  ///< The result of places_of().
  std::int64_t last_place_ = 0;
  std::set<RecordId> left_out_;
  std::string record_bytes_;
  std::string answer_bytes_;
  std::string request_bytes_;
  EvidenceLog evidence_;
  JournalRows journals_;
};

}  // namespace

std::unique_ptr<SlotTable> make_slot_table(sqlite3* db, IdIndex index) {
  return std::make_unique<Slots>(db, std::move(index));
}

}  // namespace idem::sqlite
