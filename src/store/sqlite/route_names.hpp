#pragma once

#include "core/naming.hpp"
#include "store/sqlite/connection.hpp"

#include <vector>

namespace idem::sqlite {

/// The table that was written last; empty: none was.
std::vector<RouteName> read_route_names(sqlite3* db);

/// Replaces table and generation, as part of the transaction that is open.
void write_naming(sqlite3* db, const Naming& naming);

}  // namespace idem::sqlite
