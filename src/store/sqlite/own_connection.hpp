#pragma once

#include <optional>
#include <string>

struct sqlite3;

/// A connection that a service opened, before it is a store's.
namespace idem::sqlite {

/// Why no store may be opened on it, a sentence; none: it is fit. Changes nothing.
std::optional<std::string> what_is_unfit(sqlite3* db);

/// Whether somebody else could read the file at this moment, although this connection has locked
/// it.
bool is_open_to_others(sqlite3* db);

}  // namespace idem::sqlite
