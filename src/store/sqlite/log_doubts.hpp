#pragma once

#include "store/sqlite/judge_log.hpp"

#include <optional>
#include <string>

struct sqlite3;

/// What a log means for a start, the same for the start itself and for all that look at a store.
/// `db` reads the database with what SQLite takes of the log; null: it cannot be read. Sentences
/// without the store's path.
namespace idem::sqlite {

/// Why no start may open the database: commits that were confirmed are lost, and their keys would
/// run again. None: it may.
std::optional<std::string> why_log_refuses(const std::string& log, const LogJudgement& judged,
                                           sqlite3* db);

/// Why the log does not belong to the database, though it is whole: it is older than the file, or
/// of another store, and SQLite would put its pages over newer ones. Not for a log that a process
/// writes. None: it belongs to it, or there is nothing in it.
std::optional<std::string> why_log_is_of_another(const std::string& log, const LogJudgement& judged,
                                                 sqlite3* db);

/// The same of a database that nobody has open, and that SQLite may not be able to read.
std::optional<std::string> why_log_is_of_another(const std::string& path,
                                                 const LogJudgement& judged);

/// What may be lost, though a crash can have left the log as it is. None: nothing is.
std::optional<std::string> doubt_of_log(const std::string& log, const LogJudgement& judged,
                                        sqlite3* db);

/// Why no database may be made at `path`, or an empty one be opened: it has a log, which SQLite
/// would delete. None: it may, or there is one.
std::optional<std::string> why_log_has_no_database(const std::string& path);

/// The newest moment in a database, of its records or its clock. None: it cannot be read.
std::optional<StoreTime> newest_moment_in(sqlite3* db);

}  // namespace idem::sqlite
