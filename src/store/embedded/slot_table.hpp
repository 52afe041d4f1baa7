#pragma once

#include "core/transitions/record_table.hpp"

namespace idem::embedded {

/// The error of a call about a damaged record; calls about other records go on.
StoreError unreadable(const RecordId& id, std::string_view why);

/// The records that do not run, and the stored requests of all records. A row's place is a number
/// that the table gives it; 0: it has none yet. Running records are not in it: keep_running_rows()
/// has them. The caller provides the thread and the transaction around each call.
class SlotTable : public RecordTable {
 public:
  /// Adds a record that ran; gives it a number if it has none.
  virtual void put_in(const Row& row, const transitions::Change& change) = 0;
  /// Removes a record that runs from now on; its request stays.
  virtual void take_out(const RecordId& id, std::int64_t place) = 0;

  /// The stored request of a row that has one.
  virtual std::expected<std::string, StoreError> request_of(const Row& row) = 0;
  /// `place`: not 0.
  virtual void drop_request(const RecordId& id, std::int64_t place) = 0;

  // For the checks at a start.
  virtual bool holds_id(const RecordId& id) = 0;
  virtual bool holds_place(std::int64_t place) = 0;
  /// Listings do not show the record from now on.
  virtual void leave_out(const RecordId& id) = 0;
};

}  // namespace idem::embedded
