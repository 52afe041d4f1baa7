#pragma once

#include <string>

namespace idem::sqlite {

/// Name of a sqlite3_vfs that works as `base` (empty: the default one), with one difference:
/// consecutive writes to a write-ahead log reach the file together, before its next sync or any
/// other call that would see them. SQLite writes each page in two pieces, and a commit has many
/// pages.
///
/// Durability is the same: nothing counts before the sync, and a failed write fails the sync. If
/// the process dies between the two, less of the uncommitted transaction is in the file.
///
/// Safe from any thread; a file of it belongs to one thread at a time, as its connection does.
std::string buffered_log_vfs(const std::string& base);

}  // namespace idem::sqlite
