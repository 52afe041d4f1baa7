#pragma once

#include "store/sqlite/read_all_records.hpp"

#include <expected>
#include <string>

namespace idem::sqlite {

/// The one judgement of starts, checks and looks about the content of a database with the tables of
/// this program's schema: its structure, its tables, identity, clock and fences, and all ids. The
/// error, a sentence without the path: no start opens it. A failure of SQLite is an error as well,
/// so `db` may be a file that is damaged or that changes; last_failure() then tells damage from
/// what keeps this process from the file. `version_before`: the schema version that the file had
/// before this start, 0 if it was new.
std::expected<AllRecords, std::string> judge_content(sqlite3* db, std::int64_t version_before);

/// After migrations, in their transaction: what judge_content() compares the tables with.
void note_schema(sqlite3* db);

/// A copy in memory of the tables that Meta reads, because Meta ends the process at a failure.
/// Null: they cannot be read.
Connection copy_of_meta(sqlite3* db);

}  // namespace idem::sqlite
