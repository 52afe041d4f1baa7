#include "store_conformance/sqlite/failing_vfs.hpp"

#include <sqlite3.h>

#include <cstdlib>
#include <mutex>
#include <string_view>

namespace idem::test {
namespace {

enum class FileKind { database, log, other };

struct File {
  sqlite3_file base;
  FileKind kind;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

FailingVfs plan;
std::mutex writers_mutex;
std::set<std::thread::id> writers;

sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real(); }
FileKind kind(sqlite3_file* file) { return reinterpret_cast<File*>(file)->kind; }

int close_file(sqlite3_file* f) { return real(f)->pMethods->xClose(real(f)); }
int read_file(sqlite3_file* f, void* out, int n, sqlite3_int64 at) {
  return real(f)->pMethods->xRead(real(f), out, n, at);
}
int write_file(sqlite3_file* f, const void* in, int n, sqlite3_int64 at) {
  if (kind(f) == FileKind::log && plan.log_write != 0) return plan.log_write;
  if (kind(f) == FileKind::database) {
    const std::lock_guard lock(writers_mutex);
    writers.insert(std::this_thread::get_id());
  }
  return real(f)->pMethods->xWrite(real(f), in, n, at);
}
int truncate_file(sqlite3_file* f, sqlite3_int64 size) {
  return real(f)->pMethods->xTruncate(real(f), size);
}
int sync_file(sqlite3_file* f, int flags) {
  if (kind(f) == FileKind::log && plan.log_sync != 0) return plan.log_sync;
  return real(f)->pMethods->xSync(real(f), flags);
}
int size_of(sqlite3_file* f, sqlite3_int64* size) {
  return real(f)->pMethods->xFileSize(real(f), size);
}
int lock_file(sqlite3_file* f, int level) { return real(f)->pMethods->xLock(real(f), level); }
int unlock_file(sqlite3_file* f, int level) { return real(f)->pMethods->xUnlock(real(f), level); }
int check_lock(sqlite3_file* f, int* out) {
  return real(f)->pMethods->xCheckReservedLock(real(f), out);
}
int control(sqlite3_file* f, int op, void* arg) {
  return real(f)->pMethods->xFileControl(real(f), op, arg);
}
int sector_size(sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); }
int characteristics(sqlite3_file* f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); }

const sqlite3_io_methods methods{
    1,         close_file,  read_file,  write_file, truncate_file, sync_file,       size_of,
    lock_file, unlock_file, check_lock, control,    sector_size,   characteristics, nullptr,
    nullptr,   nullptr,     nullptr,    nullptr,    nullptr};

sqlite3_vfs* base_vfs = nullptr;

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* f, int flags, int* out_flags) {
  auto* file = reinterpret_cast<File*>(f);
  file->base.pMethods = nullptr;
  file->kind = (flags & SQLITE_OPEN_WAL) != 0       ? FileKind::log
               : (flags & SQLITE_OPEN_MAIN_DB) != 0 ? FileKind::database
                                                    : FileKind::other;
  const int code = base_vfs->xOpen(base_vfs, name, file->real(), flags, out_flags);
  if (code == SQLITE_OK) file->base.pMethods = &methods;
  return code;
}

sqlite3_vfs* register_once() {
  static sqlite3_vfs vfs = [] {
    base_vfs = sqlite3_vfs_find(nullptr);
    sqlite3_vfs copy = *base_vfs;
    copy.zName = failing_vfs_name;
    copy.pNext = nullptr;
    copy.szOsFile = static_cast<int>(sizeof(File)) + base_vfs->szOsFile;
    copy.xOpen = open_file;
    return copy;
  }();
  static const int code = sqlite3_vfs_register(&vfs, 0);
  if (code != SQLITE_OK) std::abort();
  return &vfs;
}

}  // namespace

std::set<std::thread::id> FailingVfs::checkpointers() {
  const std::lock_guard lock(writers_mutex);
  return writers;
}

void FailingVfs::forget_checkpointers() {
  const std::lock_guard lock(writers_mutex);
  writers.clear();
}

FailingVfs& failing_vfs() {
  register_once();
  return plan;
}

}  // namespace idem::test
