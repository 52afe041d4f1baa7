#pragma once

#include "store/sqlite/meta.hpp"
#include "store/sqlite/slot_table.hpp"

#include <memory>

namespace idem::sqlite {

/// Keeps the running records (in_progress) of `slots` in memory beside their rows, and answers for
/// them without asking SQLite: the file's owner is the only writer, so what it wrote last is what
/// is there. In the file they stand in no index but the table itself; a reserve then appends one
/// row and touches nothing else, and a settling verb finds its row by place. After a start they are
/// found by reading the rows from the *floor* on: a place below which no running row lies, kept in
/// `meta`.
std::unique_ptr<RecordTable> keep_running_rows(sqlite3* db, Meta& meta,
                                               std::unique_ptr<SlotTable> slots);

}  // namespace idem::sqlite
