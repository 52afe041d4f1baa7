#pragma once

#include "store/sqlite/connection.hpp"

#include <idem/store.hpp>

namespace idem::sqlite {

/// The append-only log of decisions on evidence (protocol.md §19).
class EvidenceLog {
 public:
  explicit EvidenceLog(sqlite3* db);

  void append(const RecordId& id, const EvidenceEntry& entry);
  std::vector<EvidenceEntry> read(const RecordId& id);

 private:
  Statement append_;
  Statement read_;
};

}  // namespace idem::sqlite
