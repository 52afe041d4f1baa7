#pragma once

#include "core/transitions/record_table.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/id_index.hpp"

#include <memory>

namespace idem::sqlite {

/// Why a call about this record is refused, and no other.
StoreError unreadable(const RecordId& id, std::string_view why);

/// The records that do not run, and the requests of all. A row's place is the record's number, 0
/// where it has none yet.
class SlotTable : public RecordTable {
 public:
  /// A record that comes from the running ones; without a number it is given one.
  virtual void put_in(const Row& row, const transitions::Change& change) = 0;
  /// A record that goes to the running ones; its request stays under its number.
  virtual void take_out(const RecordId& id, std::int64_t place) = 0;

  /// The stored request of a row that has one.
  virtual std::expected<std::string, StoreError> request_of(const Row& row) = 0;
  virtual void drop_request(std::int64_t place) = 0;

  // For what is found at a start.
  virtual bool holds_id(const RecordId& id) = 0;
  virtual bool holds_place(std::int64_t place) = 0;
  /// No listing shows it from here on.
  virtual void leave_out(const RecordId& id) = 0;
};

/// `index` has every row of the file. Its thread and the transaction around each call are the
/// caller's matter. Records that run are not in it: keep_running_rows() stands in front.
std::unique_ptr<SlotTable> make_slot_table(sqlite3* db, IdIndex index);

}  // namespace idem::sqlite
