#pragma once

#include "core/record_table.hpp"
#include "store/sqlite/connection.hpp"

#include <memory>

namespace idem::sqlite {

/// The records in the open database's tables.
class SlotTable : public RecordTable {
 public:
  /// The stored request of a row that has one.
  virtual std::expected<std::string, StoreError> request_of(const Row& row) = 0;
};

/// Its thread and the transaction around each call are the caller's matter. Rows that run are not
/// in any index: keep_running_rows() stands in front of it.
std::unique_ptr<SlotTable> make_slot_table(sqlite3* db);

}  // namespace idem::sqlite
