#pragma once

#include "store/embedded/slot_table.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/id_index.hpp"

#include <memory>

namespace idem::sqlite {

using embedded::SlotTable;
using embedded::unreadable;

/// `index` has every row of the file. A row's place is its number.
std::unique_ptr<SlotTable> make_slot_table(sqlite3* db, IdIndex index);

}  // namespace idem::sqlite
