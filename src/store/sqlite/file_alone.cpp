#include "store/sqlite/file_alone.hpp"

#include <idem/assert.hpp>

#include <sqlite3.h>

#include <mutex>

namespace idem::sqlite {
namespace {

/// Whose descriptor the next file of this VFS reads; set while SQLite opens it.
thread_local sqlite3_file* source = nullptr;

struct Alone {
  sqlite3_file base;
  sqlite3_file* of;

  static sqlite3_file* source_of(sqlite3_file* file) { return reinterpret_cast<Alone*>(file)->of; }
  static int read(sqlite3_file* file, void* into, int bytes, sqlite3_int64 at) {
    sqlite3_file* const of = source_of(file);
    return of->pMethods->xRead(of, into, bytes, at);
  }
  static int size(sqlite3_file* file, sqlite3_int64* bytes) {
    sqlite3_file* const of = source_of(file);
    return of->pMethods->xFileSize(of, bytes);
  }
  static int no_close(sqlite3_file*) { return SQLITE_OK; }
  static int no_write(sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; }
  static int no_truncation(sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; }
  static int no_sync(sqlite3_file*, int) { return SQLITE_OK; }
  static int no_lock(sqlite3_file*, int) { return SQLITE_OK; }
  static int no_reserved_lock(sqlite3_file*, int* is_reserved) {
    *is_reserved = 0;
    return SQLITE_OK;
  }
  static int no_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int sector(sqlite3_file*) { return 4'096; }
  // So SQLite looks for no log.
  static int traits(sqlite3_file*) { return SQLITE_IOCAP_IMMUTABLE; }

  static int open(sqlite3_vfs*, const char*, sqlite3_file* file, int flags, int* out_flags) {
    static const sqlite3_io_methods methods = [] {
      sqlite3_io_methods made{};
      made.iVersion = 1;
      made.xClose = no_close;
      made.xRead = read;
      made.xWrite = no_write;
      made.xTruncate = no_truncation;
      made.xSync = no_sync;
      made.xFileSize = size;
      made.xLock = no_lock;
      made.xUnlock = no_lock;
      made.xCheckReservedLock = no_reserved_lock;
      made.xFileControl = no_control;
      made.xSectorSize = sector;
      made.xDeviceCharacteristics = traits;
      return made;
    }();
    file->pMethods = nullptr;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0 || source == nullptr) return SQLITE_CANTOPEN;
    file->pMethods = &methods;
    reinterpret_cast<Alone*>(file)->of = source;
    if (out_flags != nullptr) *out_flags = SQLITE_OPEN_READONLY;
    return SQLITE_OK;
  }
};

const char* file_alone_vfs() {
  static sqlite3_vfs vfs = [] {
    IDEM_ASSERT(sqlite3_initialize() == SQLITE_OK);
    sqlite3_vfs made = *sqlite3_vfs_find(nullptr);
    made.szOsFile = sizeof(Alone);
    made.zName = "idem-file-alone";
    made.pNext = nullptr;
    made.xOpen = Alone::open;
    return made;
  }();
  static std::once_flag once;
  std::call_once(once, [] { IDEM_ASSERT(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK); });
  return vfs.zName;
}

}  // namespace

Connection open_without_log(sqlite3* db) {
  sqlite3_file* file = nullptr;
  const bool has_file =
      sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
      file->pMethods != nullptr;
  if (!has_file) return nullptr;
  source = file;
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2("alone", &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, file_alone_vfs());
  source = nullptr;
  Connection alone(raw);
  if (code != SQLITE_OK) return nullptr;
  return alone;
}

}  // namespace idem::sqlite
