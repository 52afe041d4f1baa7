#include "store/sqlite/running_table.hpp"

#include "core/bytes/checksum.hpp"
#include "core/record/stored_record_codec.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

namespace idem::sqlite {

RunningTable::RunningTable(sqlite3* db)
    : db_(db),
      insert_(db, "INSERT INTO idem_running (cell, id, slot, record) VALUES (?1, ?2, ?3, ?4)"),
      overwrite_(db, "REPLACE INTO idem_running (cell, id, slot, record) VALUES (?1, ?2, ?3, ?4)"),
      erase_(db, "DELETE FROM idem_running WHERE cell = ?1") {}

void RunningTable::read(const See& see) {
  Statement rows(db_, "SELECT cell, id, slot, record FROM idem_running ORDER BY cell");
  while (rows.step()) {
    const std::int64_t cell = rows.integer(0);
    const auto id = id_in(rows.bytes(1));
    IDEM_ASSERT(id.has_value());  // The start has checked all of them (open_database.cpp).
    see({cell, *id, rows.integer(2), rows.bytes(3)});
    if (cell < 1 || cell >= limits::row_numbers_end) continue;  // insert() never chooses these.
    for (std::int64_t gap = last_cell_ + 1; gap < cell; ++gap) {
      if (free_.size() >= limits::running_gaps_max) break;
      free_.push(gap);
    }
    last_cell_ = cell;
  }
}

std::optional<RecordId> RunningTable::id_in(std::string_view bytes) {
  RecordId id;
  bytes.copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
  const auto sound = without_checksum(id, bytes);
  if (!sound || sound->size() != id.bytes.size()) return std::nullopt;
  return id;
}

std::int64_t RunningTable::insert(const Record& record, std::int64_t place) {
  if (!erased_.empty()) {
    const std::int64_t cell = erased_.back();
    erased_.pop_back();
    write(overwrite_, cell, record, place);
    return cell;
  }
  std::int64_t cell = last_cell_ + 1;
  if (free_.empty()) {
    last_cell_ = cell;
  } else {
    cell = free_.top();
    free_.pop();
  }
  write(insert_, cell, record, place);
  return cell;
}

void RunningTable::write(Statement& statement, std::int64_t cell, const Record& record,
                         std::int64_t place) {
  encode_record(record, record_bytes_);
  statement.bind(1, cell);
  id_bytes_.assign(reinterpret_cast<const char*>(record.id.bytes.data()), record.id.bytes.size());
  append_checksum(record.id, id_bytes_);
  statement.bind_blob(2, id_bytes_);
  statement.bind(3, place);
  statement.bind_blob(4, record_bytes_);
  statement.run();
}

void RunningTable::update(std::int64_t cell, const Record& record, std::int64_t place) {
  write(overwrite_, cell, record, place);
}

void RunningTable::erase(std::int64_t cell) { erased_.push_back(cell); }

void RunningTable::flush() {
  for (const std::int64_t cell : erased_) {
    erase_.bind(1, cell);
    erase_.run();
    free_.push(cell);
  }
  erased_.clear();
}

}  // namespace idem::sqlite
