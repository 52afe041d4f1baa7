#pragma once

#include "store/sqlite/connection.hpp"

#include <idem/record.hpp>

#include <functional>
#include <queue>
#include <vector>

namespace idem::sqlite {

/// The durable copy of the records that run. Behind each id stands its own checksum: the id has no
/// second copy, and under a wrong one a record would not stand in its key's way. A cell that was
/// given up is used again, one of the same transaction before others and then the lowest, so that
/// what is written again and again are the same few pages.
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

  /// Gives each row to `see`, in order of their cells; what it was given ends with the call.
  RunningTable(sqlite3* db, const std::function<void(const Found&)>& see);

  /// Answers the cell that the record was given.
  std::int64_t insert(const Record& record, std::int64_t place);
  void update(std::int64_t cell, const Record& record, std::int64_t place);
  /// The row may stay until flush(): a record that comes in the same transaction is written over
  /// it.
  void erase(std::int64_t cell);
  /// Before a commit: what was erased is gone.
  void flush();

 private:
  void write(Statement& statement, std::int64_t cell, const Record& record, std::int64_t place);

  Statement insert_;
  Statement overwrite_;  ///< No UPDATE: that says nothing where the row is gone.
  Statement erase_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_;
  std::vector<std::int64_t> erased_;  ///< Whose rows are still there.
  std::int64_t last_cell_ = 0;
  std::string record_bytes_;
  std::string id_bytes_;
};

}  // namespace idem::sqlite
