#pragma once

#include "store/embedded/id_index.hpp"
#include "store/embedded/slot_table.hpp"
#include "store/sqlite/connection.hpp"

#include <memory>

namespace idem::sqlite {

using embedded::SlotTable;
using embedded::unreadable;

/// `index` has every row of the file. A row's place is its number.
std::unique_ptr<SlotTable> make_slot_table(sqlite3* db, embedded::IdIndex index);

}  // namespace idem::sqlite
