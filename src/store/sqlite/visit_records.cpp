#include "store/sqlite/visit_records.hpp"

#include "core/stored_record_codec.hpp"

namespace idem::sqlite {

void visit_records(sqlite3* db, const std::function<bool(const Record*)>& see) {
  Statement rows(db, "SELECT record FROM idem_running UNION ALL SELECT record FROM idem_slots");
  while (rows.step()) {
    const auto record = decode_record(rows.bytes(0));
    if (see(record ? &*record : nullptr)) continue;
    rows.reset();
    return;
  }
}

}  // namespace idem::sqlite
