#include "store/sqlite/failure.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <vector>

namespace idem::sqlite {
namespace {

using Failed = SqliteFailure::Kind;

std::string words_of(sqlite3* db) {
  return std::string(sqlite3_errmsg(db)) + " (SQLite code " +
         std::to_string(sqlite3_extended_errcode(db)) + ")";
}

SqliteFailure failure_of_medium(sqlite3* db, const std::string& path, FileUse use) {
  if (auto why = why_no_access(path, use)) return {Failed::access, std::move(*why)};
  const int error = error_of(db);
  if (error != 0 && error != ENOENT) {
    return {
        is_about_access(error) || error == ENOSPC ? Failed::access : Failed::other,
        file_failure(path, use == FileUse::reading ? "cannot be read" : "cannot be used", error)};
  }
  return {Failed::other,
          path + ": cannot be used: " + words_of(db) +
              "; nothing was changed. Look at its folder, its disk and the kernel's log (dmesg)"};
}

/// SQLite says the same where the lock is held and where the system has none to give.
SqliteFailure failure_of_lock(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const auto why = folder.empty() ? std::nullopt : why_no_locks(folder);
  if (why) return {Failed::access, path + ": " + *why};
  return {Failed::busy, "another process owns " + path +
                            ": one store file serves one process at a time (fuser -v " + path +
                            " names it)"};
}

}  // namespace

int error_of(sqlite3* db) noexcept {
  switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
      return sqlite3_system_errno(db);
    case SQLITE_FULL:
      return ENOSPC;
    default:
      return 0;
  }
}

SqliteFailure failure_of(sqlite3* db, const std::string& path, FileUse use) {
  switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return failure_of_lock(path);
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_FULL:
      return failure_of_medium(db, path, use);
    case SQLITE_NOTADB:
      return {Failed::no_store,
              path +
                  ": is not a database: write the path of the store. If this was the store, its "
                  "first bytes are damaged: look at the disk, and bring back a copy of it (idem "
                  "store restore)"};
    case SQLITE_CORRUPT:
      return {Failed::corrupt,
              path + ": is corrupt: " + sqlite3_errmsg(db) +
                  ". Nothing was changed: look at all of it (idem store check) and "
                  "at the disk, and bring back a copy of it (idem store restore)"};
    default:
      return {Failed::other, path + ": " + words_of(db) + "; nothing was changed"};
  }
}

std::optional<SqliteFailure> last_failure(sqlite3* db, const std::string& path, FileUse use) {
  const int code = sqlite3_errcode(db) & 0xff;
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return std::nullopt;
  return failure_of(db, path, use);
}

std::optional<std::string> why_no_access(const std::string& path, FileUse use) {
  const std::string log = path + "-wal";
  struct stat found{};
  std::vector<FilePart> parts{{path, false}, {log, false}};
  // Without a log SQLite makes one there.
  const bool makes_files = use == FileUse::writing && ::stat(log.c_str(), &found) != 0;
  if (makes_files) {
    parts.insert(parts.begin(), {std::filesystem::path(path).parent_path().string(), false});
  }
  return idem::why_no_access(path, parts, use);
}

}  // namespace idem::sqlite
