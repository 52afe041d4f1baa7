#pragma once

#include "store/sqlite/read_all_records.hpp"

#include <expected>
#include <optional>
#include <string>

namespace idem::sqlite {

/// The one judgement of starts, checks and looks about the content of a database with the tables of
/// this program's schema: its structure, its tables, identity, clock and fences, and all ids. The
/// error, a sentence without the path: no start opens it. A failure of SQLite is an error as well,
/// so `db` may be a file that is damaged or that changes; last_failure() then tells damage from
/// what keeps this process from the file. `version_before`: the schema version that the file had
/// before this start, 0 if it was new.
std::expected<AllRecords, std::string> judge_content(sqlite3* db, std::int64_t version_before);

/// Why SQLite opens the file for reading alone, as a part of a sentence: a byte of its header asks
/// for a later SQLite. A log that has the first page counts instead. None: it does not.
std::optional<std::string> why_only_readable(sqlite3* db);

/// Which definition of a table, an index or a trigger is not what the migrations up to `version`
/// make, as a part of a sentence. None: all are. A damaged name of a column would end the process
/// at the statement that meets it.
std::optional<std::string> why_definitions_differ(sqlite3* db, std::int64_t version);

/// Notes in an open transaction the checksum of the present definitions: they count as sound also
/// to a version of SQLite that writes them otherwise.
void note_definitions(sqlite3* db);

/// "is corrupt: WHY. Nothing was changed: ..."
std::string corrupt_because(std::string why);

/// A copy in memory of the tables that Meta reads, because Meta ends the process at a failure.
/// Null: they cannot be read.
Connection copy_of_meta(sqlite3* db);

}  // namespace idem::sqlite
