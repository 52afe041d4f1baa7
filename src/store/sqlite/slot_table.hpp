#pragma once

#include "core/record_table.hpp"
#include "store/sqlite/connection.hpp"

#include <memory>

namespace idem::sqlite {

/// The protocol's records in the open database. Its thread and the transaction around each call are
/// the caller's matter.
std::unique_ptr<RecordTable> make_slot_table(sqlite3* db);

}  // namespace idem::sqlite
