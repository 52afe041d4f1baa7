#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace idem::embedded {

/// The durable copy of the running records. Each id has a checksum of its own: there is no second
/// copy of it, and under a wrong id a record would not block its key.
class RunningCells {
 public:
  struct Found {
    std::int64_t cell;
    RecordId id;
    std::int64_t place;  ///< The record's number in SlotTable.
    std::string_view record;
  };
  using See = std::function<void(const Found&)>;

  virtual ~RunningCells() = default;

  /// Shows each row to `see`, in order of their cells; `Found` is valid during the call only. Must
  /// come first, and once.
  virtual void read(const See& see) = 0;
  /// Returns the record's cell.
  virtual std::int64_t insert(const Record& record, std::int64_t place) = 0;
  virtual void update(std::int64_t cell, const Record& record, std::int64_t place) = 0;
  /// The row may stay until flush(): a new record of the same transaction overwrites it.
  virtual void erase(std::int64_t cell) = 0;
  /// Deletes the erased rows; must come before a commit.
  virtual void flush() = 0;
};

}  // namespace idem::embedded
