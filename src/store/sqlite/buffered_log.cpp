#include "store/sqlite/buffered_log.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <sqlite3.h>

namespace idem::sqlite {
namespace {

/// SQLite allocates `szOsFile` bytes; the base's file follows ours in them.
struct LogFile {
  sqlite3_file base{};
  std::vector<char> ahead;       ///< Written by SQLite, not yet by the base.
  sqlite3_int64 ahead_from = 0;  ///< Offset of its first byte in the file.

  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  const sqlite3_io_methods& io() { return *real()->pMethods; }

  sqlite3_int64 ahead_end() const { return ahead_from + static_cast<sqlite3_int64>(ahead.size()); }

  int flush() {
    if (ahead.empty()) return SQLITE_OK;
    const int code = io().xWrite(real(), ahead.data(), static_cast<int>(ahead.size()), ahead_from);
    // Kept after a failure: the next call must fail too, not go on without these bytes.
    if (code == SQLITE_OK) ahead.clear();
    return code;
  }

  int write(const void* data, int size, sqlite3_int64 at) {
    const bool fits =
        ahead.size() + static_cast<std::size_t>(size) <= limits::sqlite_log_buffer_bytes;
    if (at != ahead_end() || !fits) {
      if (const int code = flush(); code != SQLITE_OK) return code;
      ahead_from = at;
    }
    const auto* bytes = static_cast<const char*>(data);
    ahead.insert(ahead.end(), bytes, bytes + size);
    return SQLITE_OK;
  }
};

LogFile& log(sqlite3_file* file) { return *reinterpret_cast<LogFile*>(file); }

/// For calls that must see the file as SQLite wrote it.
template <class Then>
int flushed(sqlite3_file* file, Then then) {
  const int code = log(file).flush();
  return code == SQLITE_OK ? then(log(file)) : code;
}

int close_file(sqlite3_file* file) {
  const int flush_code = log(file).flush();
  const int close_code = log(file).io().xClose(log(file).real());
  std::destroy_at(&log(file));
  return flush_code != SQLITE_OK ? flush_code : close_code;
}
int read_file(sqlite3_file* file, void* out, int size, sqlite3_int64 at) {
  return flushed(file, [=](LogFile& f) { return f.io().xRead(f.real(), out, size, at); });
}
int write_file(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
  return log(file).write(data, size, at);
}
int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  return flushed(file, [=](LogFile& f) { return f.io().xTruncate(f.real(), size); });
}
int sync_file(sqlite3_file* file, int flags) {
  return flushed(file, [=](LogFile& f) { return f.io().xSync(f.real(), flags); });
}
int size_of(sqlite3_file* file, sqlite3_int64* size) {
  return flushed(file, [=](LogFile& f) { return f.io().xFileSize(f.real(), size); });
}
int lock_file(sqlite3_file* file, int level) {
  return log(file).io().xLock(log(file).real(), level);
}
int unlock_file(sqlite3_file* file, int level) {
  return log(file).io().xUnlock(log(file).real(), level);
}
int check_lock(sqlite3_file* file, int* out) {
  return log(file).io().xCheckReservedLock(log(file).real(), out);
}
int control(sqlite3_file* file, int op, void* argument) {
  return log(file).io().xFileControl(log(file).real(), op, argument);
}
int sector_size(sqlite3_file* file) { return log(file).io().xSectorSize(log(file).real()); }
int characteristics(sqlite3_file* file) {
  return log(file).io().xDeviceCharacteristics(log(file).real());
}

constexpr sqlite3_io_methods log_methods{
    1,         close_file,  read_file,  write_file, truncate_file, sync_file,       size_of,
    lock_file, unlock_file, check_lock, control,    sector_size,   characteristics, nullptr,
    nullptr,   nullptr,     nullptr,    nullptr,    nullptr};

sqlite3_vfs* base_of(sqlite3_vfs* vfs) { return static_cast<sqlite3_vfs*>(vfs->pAppData); }

int open_log(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  sqlite3_vfs* base = base_of(vfs);
  // Every other file is the base's own, with its methods and its shared memory.
  if ((flags & SQLITE_OPEN_WAL) == 0) return base->xOpen(base, name, file, flags, out_flags);
  LogFile* made = new (file) LogFile;
  made->real()->pMethods = nullptr;
  const int code = base->xOpen(base, name, made->real(), flags, out_flags);
  if (code == SQLITE_OK) {
    made->base.pMethods = &log_methods;
  } else {
    if (made->real()->pMethods != nullptr) made->io().xClose(made->real());
    std::destroy_at(made);
  }
  return code;
}

/// Never freed: SQLite keeps pointers to it.
struct Registered {
  std::string name;
  sqlite3_vfs vfs{};
};

// The base's functions expect the base.
template <auto Member, class... Arguments>
auto passed_on(sqlite3_vfs* vfs, Arguments... arguments) {
  return (base_of(vfs)->*Member)(base_of(vfs), arguments...);
}

sqlite3_vfs made_from(sqlite3_vfs* base, const char* name) {
  sqlite3_vfs vfs{};
  vfs.iVersion = 1;
  vfs.szOsFile = static_cast<int>(sizeof(LogFile)) + base->szOsFile;
  vfs.mxPathname = base->mxPathname;
  vfs.zName = name;
  vfs.pAppData = base;
  vfs.xOpen = open_log;
  vfs.xDelete = passed_on<&sqlite3_vfs::xDelete>;
  vfs.xAccess = passed_on<&sqlite3_vfs::xAccess>;
  vfs.xFullPathname = passed_on<&sqlite3_vfs::xFullPathname>;
  vfs.xRandomness = passed_on<&sqlite3_vfs::xRandomness>;
  vfs.xSleep = passed_on<&sqlite3_vfs::xSleep>;
  vfs.xCurrentTime = passed_on<&sqlite3_vfs::xCurrentTime>;
  vfs.xGetLastError = passed_on<&sqlite3_vfs::xGetLastError>;
  return vfs;
}

}  // namespace

std::string buffered_log_vfs(const std::string& base) {
  static std::mutex mutex;
  static std::deque<Registered> all;
  const std::lock_guard lock(mutex);
  sqlite3_vfs* found = sqlite3_vfs_find(base.empty() ? nullptr : base.c_str());
  IDEM_ASSERT(found != nullptr);
  const std::string name = std::string("idem-buffered-log+") + found->zName;
  for (const Registered& known : all) {
    if (known.name == name) return name;
  }
  Registered& made = all.emplace_back(name);
  made.vfs = made_from(found, made.name.c_str());
  IDEM_ASSERT(sqlite3_vfs_register(&made.vfs, 0) == SQLITE_OK);
  return name;
}

}  // namespace idem::sqlite
