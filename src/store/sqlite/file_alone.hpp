#pragma once

#include "store/sqlite/connection.hpp"

namespace idem::sqlite {

/// Reads the database file of `db` as it is without its log, by the descriptor that `db` has:
/// closing another one would drop SQLite's locks. Ends before `db`, and is used by its thread.
/// Null: it cannot be read so.
Connection open_without_log(sqlite3* db);

}  // namespace idem::sqlite
