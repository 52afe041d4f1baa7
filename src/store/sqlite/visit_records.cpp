#include "store/sqlite/visit_records.hpp"

#include "core/record/stored_record_codec.hpp"

namespace idem::sqlite {

void visit_records(sqlite3* db, const std::function<bool(const Record*)>& see, const char* sql) {
  Statement rows(db, sql);
  while (rows.step()) {
    RecordId id;
    rows.bytes(0).copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
    const auto record = decode_record(id, rows.bytes(1));
    if (see(record ? &*record : nullptr)) continue;
    rows.reset();
    return;
  }
}

}  // namespace idem::sqlite
