#pragma once

#include "store/sqlite/connection.hpp"

#include <idem/record.hpp>

#include <functional>

namespace idem::sqlite {

/// A row for each record of the file, running or not: its id and its record, encoded.
inline constexpr const char* records_sql =
    "SELECT substr(id, 1, 16), record FROM idem_running UNION ALL SELECT id, record FROM "
    "idem_slots";

/// The same of those that do not run.
inline constexpr const char* settled_sql = "SELECT id, record FROM idem_slots";

/// Shows every record of the file that `sql` reads, without id, answer and request; null: the
/// record cannot be read. Stops at the end or when `see` returns false.
void visit_records(sqlite3* db, const std::function<bool(const Record*)>& see,
                   const char* sql = records_sql);

}  // namespace idem::sqlite
