#include "store/sqlite/read_only_vfs.hpp"

#include <idem/assert.hpp>

#include <unistd.h>

#include <sqlite3.h>

namespace idem::sqlite {
namespace {

/// SQLite's own file layer without locks.
sqlite3_vfs* base() {
  static sqlite3_vfs* const found = sqlite3_vfs_find("unix-none");
  return found;
}

int open_read_only(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  // Temporary files of a sort have no name, and are SQLite's own.
  if (name == nullptr) return base()->xOpen(base(), name, file, flags, out_flags);
  const bool is_log = (flags & SQLITE_OPEN_WAL) != 0;
  const bool is_missing = is_log && ::access(name, F_OK) != 0;
  const int wanted = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
  return base()->xOpen(base(), is_missing ? "/dev/null" : name, file, wanted, out_flags);
}

int delete_file(sqlite3_vfs*, const char*, int) { return SQLITE_READONLY; }

sqlite3_vfs* registered() {
  IDEM_ASSERT(sqlite3_initialize() == SQLITE_OK && base() != nullptr);
  static sqlite3_vfs vfs = *base();
  vfs.zName = "idem-read-only";
  vfs.pNext = nullptr;
  vfs.xOpen = open_read_only;
  vfs.xDelete = delete_file;
  IDEM_ASSERT(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
  return &vfs;
}

}  // namespace

const char* read_only_vfs() {
  static sqlite3_vfs* const vfs = registered();
  return vfs->zName;
}

}  // namespace idem::sqlite
