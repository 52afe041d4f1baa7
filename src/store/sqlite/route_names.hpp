#pragma once

#include "core/naming/naming.hpp"
#include "store/sqlite/connection.hpp"

namespace idem::sqlite {

/// The names that were written last; the lists are empty before the first write.
Naming read_naming(sqlite3* db, std::uint64_t generation, bool by_operation);

/// Replaces table and generation, as part of the open transaction.
void write_naming(sqlite3* db, const Naming& naming);

}  // namespace idem::sqlite
