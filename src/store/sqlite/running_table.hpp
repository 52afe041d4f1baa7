#pragma once

#include "store/sqlite/connection.hpp"

#include <idem/record.hpp>

#include <functional>
#include <queue>
#include <vector>

namespace idem::sqlite {

/// The durable copy of the running records. Each id has a checksum of its own: there is no second
/// copy of it, and under a wrong id a record would not block its key. A freed cell is used again,
/// one of the same transaction first and then the lowest, so that the same few pages are written.
class RunningTable {
 public:
  struct Found {
    std::int64_t cell;
    RecordId id;
    std::int64_t place;  ///< The record's number in SlotTable.
    std::string_view record;
  };

  /// The id in a row; none: it is damaged.
  static std::optional<RecordId> id_in(std::string_view bytes);

  /// Shows each row to `see`, in order of their cells; `Found` is valid during the call only.
  RunningTable(sqlite3* db, const std::function<void(const Found&)>& see);

  /// Returns the record's cell.
  std::int64_t insert(const Record& record, std::int64_t place);
  void update(std::int64_t cell, const Record& record, std::int64_t place);
  /// The row may stay until flush(): a new record of the same transaction overwrites it.
  void erase(std::int64_t cell);
  /// Deletes the erased rows; must come before a commit.
  void flush();

 private:
  void write(Statement& statement, std::int64_t cell, const Record& record, std::int64_t place);

  Statement insert_;
  Statement overwrite_;  ///< No UPDATE, which would succeed silently without the row.
  Statement erase_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_;
  std::vector<std::int64_t> erased_;  ///< Erased cells whose rows are still there.
  std::int64_t last_cell_ = 0;
  std::string record_bytes_;
  std::string id_bytes_;
};

}  // namespace idem::sqlite
