#pragma once

#include <optional>
#include <string>

struct sqlite3;

/// Checks of a connection that a service opened, before a store uses it.
namespace idem::sqlite {

/// Why no store can be opened on it, a sentence; none: it is fit. Changes nothing.
std::optional<std::string> why_refused(sqlite3* db);

/// Whether another connection could read the file now, although this one has locked it.
bool is_open_to_others(sqlite3* db);

}  // namespace idem::sqlite
