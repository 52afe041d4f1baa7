#pragma once

#include "core/naming/naming.hpp"
#include "store/sqlite/connection.hpp"

namespace idem::sqlite {

/// What was written last, with empty lists where nothing was.
Naming read_naming(sqlite3* db, std::uint64_t generation, bool by_operation);

/// Replaces table and generation, as part of the transaction that is open.
void write_naming(sqlite3* db, const Naming& naming);

}  // namespace idem::sqlite
