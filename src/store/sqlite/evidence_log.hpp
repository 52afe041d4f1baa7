#pragma once

#include "core/transitions/record_table.hpp"
#include "store/sqlite/connection.hpp"

namespace idem::sqlite {

/// Of a line of the log, also over its record's id.
std::int64_t checksum_of_line(const RecordId& id, const EvidenceEntry& entry);

/// The append-only log of decisions on evidence (protocol.md §19). Each line has a checksum,
/// because it may hold an answer that is replayed later.
class EvidenceLog {
 public:
  explicit EvidenceLog(sqlite3* db);

  void append(const RecordId& id, const EvidenceEntry& entry);
  /// Error: a line is damaged. Lines of older schema versions have no checksum.
  RecordTable::Log read(const RecordId& id);

 private:
  Statement append_;
  Statement read_;
};

}  // namespace idem::sqlite
