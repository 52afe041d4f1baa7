#pragma once

#include <string>

namespace idem::sqlite {

/// Name of a sqlite3_vfs that is `base` (empty: the default one) but for one thing: writes that
/// continue each other in a write-ahead log reach the file together, before the next sync of it, or
/// whatever else would see them. SQLite writes each page in two pieces, and a commit has many
/// pages.
///
/// Durability is as without it: nothing counts before the sync, and a write that fails fails the
/// sync. Of a process that dies between the two, less of the uncommitted transaction is in the
/// file.
///
/// Safe from any thread; a file of it belongs to one thread at a time, as its connection does.
std::string buffered_log_vfs(const std::string& base);

}  // namespace idem::sqlite
