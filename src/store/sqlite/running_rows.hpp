#pragma once

#include "store/sqlite/slot_table.hpp"

#include <memory>

namespace idem::sqlite {

/// Keeps the running records (in_progress) in memory beside their rows, and answers for them
/// without asking SQLite: the file's owner is the only writer, so what it wrote last is what is
/// there. A reserve then writes one small row that no index knows, and what settles it takes that
/// row away and puts the record into `slots`, in the transaction of the same step. All rows that
/// run are read here, once.
///
/// A row that cannot be read stands in the way of its key, and so does one whose id or number is
/// found twice: which of the two is true nobody knows.
std::unique_ptr<RecordTable> keep_running_rows(sqlite3* db, std::unique_ptr<SlotTable> slots);

}  // namespace idem::sqlite
