#include "store/sqlite/backup_file.hpp"

#include "store/folder.hpp"
#include "store/restoring.hpp"
#include "store/sqlite/check_file.hpp"
#include "store/sqlite/failure.hpp"
#include "store/sqlite/log_doubts.hpp"
#include "store/sqlite/meta.hpp"
#include "store/sqlite/snapshot.hpp"

#include <idem/crash_point.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace idem::sqlite {
namespace {

using Kind = StoreFileError::Kind;

/// 4 MiB between two calls of the progress.
constexpr int pages_per_step = 1'024;

std::unexpected<StoreFileError> backup_failure(std::string why) {
  return std::unexpected(StoreFileError{Kind::failed, std::move(why)});
}

/// Of a call on the copy.
std::unexpected<StoreFileError> copy_failure(sqlite3* db, const std::string& to) {
  return backup_failure(failure_of(db, to, FileUse::writing).why);
}

struct FinishBackup {
  void operator()(sqlite3_backup* backup) const noexcept { sqlite3_backup_finish(backup); }
};

std::expected<Connection, StoreFileError> make_database(const std::string& to) {
  const int file = ::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return backup_failure(file_failure(to, "cannot be created", errno));
  ::close(file);
  sqlite3* db = nullptr;
  const int code =
      sqlite3_open_v2(to.c_str(), &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Connection connection(db);
  // The whole file is synced once, at the end; before that it does not count.
  if (code != SQLITE_OK || !text_value(db,
                                       "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF;"
                                       "PRAGMA locking_mode=EXCLUSIVE")) {
    return copy_failure(db, to);
  }
  return connection;
}

std::expected<void, StoreFileError> sync_backup(const std::string& path) {
  if (make_durable(path)) return {};
  return backup_failure(file_failure(path, "cannot be made durable", errno));
}

/// The header of a copy still asks for a log, which a database of journal_mode OFF cannot have; a
/// rollback journal in memory does for one row.
bool note_copied_at(sqlite3* db, StoreTime at) {
  if (!text_value(db, "PRAGMA journal_mode=MEMORY")) return false;
  Meta(db).put_integer(copied_at_name, at.time_since_epoch().count());
  return true;
}

}  // namespace

Leftover::~Leftover() {
  if (path_.empty()) return;
  for (const char* const suffix : {"", "-wal", "-shm", "-journal"}) {
    ::unlink((path_ + suffix).c_str());
  }
}

std::expected<void, StoreFileError> note_copied_at_in(const std::string& path,
                                                      StoreTime copied_at) {
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
  const Connection connection(db);
  if (code != SQLITE_OK || !text_value(db, "PRAGMA synchronous=FULL; BEGIN IMMEDIATE")) {
    return copy_failure(db, path);
  }
  Meta(db).put_integer(copied_at_name, copied_at.time_since_epoch().count());
  if (!text_value(db, "COMMIT")) return copy_failure(db, path);
  return {};
}

std::expected<void, StoreFileError> sync_folder(const std::string& path) {
  return sync_backup(std::filesystem::path(path).parent_path().string());
}

std::expected<void, StoreFileError> copy_pages(sqlite3* source, const std::string& to,
                                               std::optional<StoreTime> copied_at,
                                               const StoreFileProgress& progress) {
  auto made = make_database(to);
  if (!made) return std::unexpected(std::move(made.error()));
  sqlite3* const db = made->get();
  std::unique_ptr<sqlite3_backup, FinishBackup> backup(
      sqlite3_backup_init(db, "main", source, "main"));
  if (!backup) return copy_failure(db, to);
  int code = SQLITE_OK;
  while (code == SQLITE_OK) {
    code = sqlite3_backup_step(backup.get(), pages_per_step);
    const int all = sqlite3_backup_pagecount(backup.get());
    const int left = sqlite3_backup_remaining(backup.get());
    if (progress) progress(static_cast<std::uint64_t>(all - left), static_cast<std::uint64_t>(all));
    crash_point(CrashPoint::backup_begun);
  }
  backup.reset();
  if (code != SQLITE_DONE) {
    // The copy's connection has the failures of the source, too.
    const bool is_sources = (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB ||
                            code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ;
    if (!is_sources) return copy_failure(db, to);
    return backup_failure(fmt::format(
        "{}: cannot be read to its end: {} (SQLite code {}); idem store check lists what is wrong "
        "in it",
        sqlite3_db_filename(source, "main"), sqlite3_errstr(code), code));
  }
  if (copied_at && !note_copied_at(db, *copied_at)) return copy_failure(db, to);
  made->reset();
  return sync_backup(to);
}

std::expected<StoreFileReport, StoreFileError> backup_file(const std::string& path,
                                                           const std::string& to,
                                                           const StoreFileProgress& progress) {
  const std::string real = path_to_read(path);
  struct stat found{};
  if (::lstat(to.c_str(), &found) == 0) {
    return std::unexpected(StoreFileError{
        Kind::refused, to + ": there is a file already; name a new one, or move it away"});
  }
  const std::string part = name_beside(to, ".part-");
  Leftover leftover(part);
  auto copied = with_snapshot(real, [&](Snapshot& source) -> std::expected<void, StoreFileError> {
    ::unlink(part.c_str());
    const std::string log = real + "-wal";
    const auto judged = judge_written_log(log);
    if (!judged) return std::unexpected(StoreFileError{Kind::failed, judged.error()});
    if (const auto why = why_log_refuses(log, *judged, source.db())) {
      return std::unexpected(StoreFileError{Kind::refused, real + ": " + *why});
    }
    return copy_pages(source.db(), part, source.taken_at(), progress);
  });
  if (!copied) return std::unexpected(std::move(copied.error()));
  crash_point(CrashPoint::backup_copied);
  auto report = check_file(part, {});
  if (!report) return report;
  crash_point(CrashPoint::backup_checked);
  // A link fails where there is a file, also one that another process made meanwhile.
  if (::link(part.c_str(), to.c_str()) != 0) {
    return backup_failure(file_failure(to, "cannot be named", errno));
  }
  crash_point(CrashPoint::backup_named);
  if (auto synced = sync_folder(to); !synced) return std::unexpected(std::move(synced.error()));
  return report;
}

}  // namespace idem::sqlite
