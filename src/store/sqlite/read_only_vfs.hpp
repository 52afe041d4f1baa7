#pragma once

namespace idem::sqlite {

/// Name of a sqlite3_vfs that opens files for reading only, takes no locks and deletes nothing: for
/// the file of a store that another process owns. A log that is not there reads as empty. Use it
/// with PRAGMA locking_mode=EXCLUSIVE, so that SQLite keeps its index of the log in memory.
/// Safe from any thread.
const char* read_only_vfs();

}  // namespace idem::sqlite
