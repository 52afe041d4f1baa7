#include "store/sqlite/slot_table.hpp"

#include "core/stored_response_codec.hpp"
#include "store/sqlite/evidence_log.hpp"
#include "store/sqlite/slot_row.hpp"

#include <limits>

namespace idem::sqlite {
namespace {

std::string select_slots(std::string_view rest) {
  return "SELECT " + std::string(slot_columns) + std::string(rest);
}

std::string list_slots(std::string_view index_condition) {
  return select_slots(", status, whole FROM slots LEFT JOIN responses USING (slot) WHERE ") +
         std::string(index_condition) + "id > ?1 ORDER BY id LIMIT ?2";
}

StoreError unreadable(const RecordId& id, std::string_view why) {
  return {StoreError::Code::refused,
          "record " + to_hex(id.bytes) + " cannot be read: " + std::string(why)};
}

std::int64_t number(StoreTime moment) { return moment.time_since_epoch().count(); }

class Slots final : public SlotTable {
 public:
  explicit Slots(sqlite3* db) : db_(db), evidence_(db) {}

  Loaded load(const RecordId& id, Parts parts, StoreTime now) override {
    find_.bind_bytes(1, id.bytes);
    if (!find_.step()) return std::nullopt;
    const RowsEnd end(find_);
    auto record = read_slot(find_);
    if (!record) return std::unexpected(unreadable(id, record.error()));
    Row row{std::move(*record), find_.integer(0)};
    const bool answered =
        parts == Parts::all ||
        (parts == Parts::answer && transitions::state_at(row.record, now) == State::completed);
    if (answered && row.record.state == State::completed) {
      if (auto bad = read_response(row)) return std::unexpected(unreadable(id, *bad));
    }
    if (parts == Parts::all && row.record.stored_request) {
      if (auto bad = read_request(row)) return std::unexpected(unreadable(id, *bad));
    }
    return row;
  }

  std::int64_t insert(const Record& record) override {
    bind_insert(insert_, record);
    insert_.run();
    const std::int64_t slot = sqlite3_last_insert_rowid(db_);
    if (record.response) write_response(slot, *record.response);
    if (record.stored_request) write_request(slot, *record.stored_request);
    return slot;
  }

  std::expected<std::string, StoreError> request_of(const Row& row) override {
    Row whole = row;
    if (auto bad = read_request(whole)) return std::unexpected(unreadable(row.record.id, *bad));
    return std::move(*whole.record.stored_request);
  }

  void update(const Row& row, const transitions::Change& change) override {
    bind_update(update_, row.record, row.place);
    update_.run();
    if (change.response) {
      if (row.record.response) {
        write_response(row.place, *row.record.response);
      } else {
        drop(drop_response_, row.place);
      }
    }
    if (change.request) {
      if (row.record.stored_request) {
        write_request(row.place, *row.record.stored_request);
      } else {
        drop(drop_request_, row.place);
      }
    }
  }

  void erase(const Row& row) override {
    drop(drop_slot_, row.place);
    drop(drop_response_, row.place);
    drop(drop_request_, row.place);
  }

  std::vector<RecordId> due_for_sweep(StoreTime now, std::size_t limit) override {
    std::vector<RecordId> ids;
    due(State::pending, now, limit, ids);
    return ids;
  }

  std::vector<RecordId> due_for_reap(StoreTime now, std::size_t limit) override {
    std::vector<RecordId> ids;
    for (const State state : {State::completed, State::failed_retryable, State::expired}) {
      due(state, now, limit, ids);
    }
    return ids;
  }

  std::optional<RecordId> next_claimable(StoreTime now) override {
    claimable_.bind(1, number(now));
    if (!claimable_.step()) return std::nullopt;
    const RowsEnd end(claimable_);
    return id_of(claimable_, 0);
  }

  void hide_from_lifecycle(const RecordId& id) override {
    hide_from_lifecycle_.bind_bytes(1, id.bytes);
    hide_from_lifecycle_.run();
  }

  void hide_from_claims(const RecordId& id) override {
    hide_from_claims_.bind_bytes(1, id.bytes);
    hide_from_claims_.bind(2, std::numeric_limits<std::int64_t>::max());
    hide_from_claims_.run();
  }

  std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                               std::vector<Record>& found) override {
    Statement& rows = verb.state == State::unknown ? list_unknown_ : list_;
    const RowsEnd end(rows);
    const RecordId first;
    rows.bind_bytes(1, verb.after ? std::span<const std::uint8_t>(verb.after->bytes)
                                  : std::span(first.bytes).first(0));
    rows.bind(2, static_cast<std::int64_t>(rows_max));
    RecordId last;
    std::size_t seen = 0;
    for (; rows.step(); ++seen) {
      if (found.size() >= verb.limit) return std::nullopt;
      last = id_of(rows, 1);
      if (auto record = read_listed(rows, now); record && is_listed(verb, *record)) {
        found.push_back(std::move(*record));
      }
    }
    return seen == rows_max ? std::optional(last) : std::nullopt;
  }

  void append_evidence(const RecordId& id, const EvidenceEntry& entry) override {
    evidence_.append(id, entry);
  }
  std::vector<EvidenceEntry> evidence(const RecordId& id) override { return evidence_.read(id); }

 private:
  /// An id of the wrong size is cut or padded: it is only used to look the row up again.
  static RecordId id_of(Statement& row, int at) {
    RecordId id;
    row.bytes(at).copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
    return id;
  }

  std::optional<std::string_view> read_response(Row& row) {
    response_.bind(1, row.place);
    if (!response_.step()) return "its answer is missing";
    const RowsEnd end(response_);
    auto fields = decode_fields(response_.bytes(2));
    if (!fields) return fields.error();
    const std::int64_t status = response_.integer(0);
    if (status < 100 || status > 999) return "its answer has no valid status";
    row.record.response = {static_cast<int>(status), std::move(*fields),
                           std::string(response_.bytes(3)), response_.integer(1) != 0};
    return std::nullopt;
  }

  std::optional<std::string_view> read_request(Row& row) {
    request_.bind(1, row.place);
    if (!request_.step()) return "its request is missing";
    const RowsEnd end(request_);
    row.record.stored_request = request_.bytes(0);
    return std::nullopt;
  }

  /// None for what a listing does not show: rows that count as none, and corrupt ones.
  std::optional<Record> read_listed(Statement& rows, StoreTime now) {
    auto record = read_slot(rows);
    if (!record) return std::nullopt;
    if (!rows.is_null(slot_columns_end)) {
      record->response.emplace();
      record->response->status = static_cast<int>(rows.integer(slot_columns_end));
      record->response->body_stored = rows.integer(slot_columns_end + 1) != 0;
    }
    return transitions::view(std::move(*record), now);
  }

  void write_response(std::int64_t slot, const StoredResponse& response) {
    const std::string fields = encode_fields(response.headers);
    put_response_.bind(1, slot);
    put_response_.bind(2, response.status);
    put_response_.bind(3, response.body_stored ? 1 : 0);
    put_response_.bind_blob(4, fields);
    put_response_.bind_blob(5, response.body);
    put_response_.run();
  }

  void write_request(std::int64_t slot, const std::string& request) {
    put_request_.bind(1, slot);
    put_request_.bind_blob(2, request);
    put_request_.run();
  }

  static void drop(Statement& statement, std::int64_t slot) {
    statement.bind(1, slot);
    statement.run();
  }

  void due(State state, StoreTime now, std::size_t limit, std::vector<RecordId>& ids) {
    if (ids.size() >= limit) return;
    due_.bind(1, static_cast<std::int64_t>(state));
    due_.bind(2, number(now));
    due_.bind(3, static_cast<std::int64_t>(limit - ids.size()));
    while (due_.step()) ids.push_back(id_of(due_, 0));
  }

  sqlite3* db_;
  Statement find_{db_, select_slots(" FROM slots WHERE id = ?1 AND state <> 2")};
  Statement insert_{db_, insert_slot};
  Statement update_{db_, update_slot};
  Statement drop_slot_{db_, "DELETE FROM slots WHERE slot = ?1"};
  Statement response_{db_, "SELECT status, whole, fields, body FROM responses WHERE slot = ?1"};
  Statement put_response_{db_, "INSERT OR REPLACE INTO responses VALUES (?1, ?2, ?3, ?4, ?5)"};
  Statement drop_response_{db_, "DELETE FROM responses WHERE slot = ?1"};
  Statement request_{db_, "SELECT request FROM requests WHERE slot = ?1"};
  Statement put_request_{db_, "INSERT OR REPLACE INTO requests VALUES (?1, ?2)"};
  Statement drop_request_{db_, "DELETE FROM requests WHERE slot = ?1"};
  Statement due_{db_,
                 "SELECT id FROM slots WHERE state = ?1 AND state <> 2 AND due_at <= ?2 ORDER BY "
                 "due_at LIMIT ?3"};
  Statement claimable_{db_,
                       "SELECT id FROM slots WHERE state = 1 AND locked_until <= ?1"
                       " AND expires_at > ?1 ORDER BY locked_until, id LIMIT 1"};
  Statement hide_from_lifecycle_{db_,
                                 "UPDATE slots SET due_at = NULL WHERE id = ?1 AND state <> 2"};
  Statement hide_from_claims_{db_,
                              "UPDATE slots SET locked_until = ?2 WHERE id = ?1 AND state <> 2"};
  Statement list_{db_, list_slots("state <> 2 AND ")};
  Statement list_unknown_{db_, list_slots("state = 5 AND ")};
  EvidenceLog evidence_;
};

}  // namespace

std::unique_ptr<SlotTable> make_slot_table(sqlite3* db) { return std::make_unique<Slots>(db); }

}  // namespace idem::sqlite
