#include "store/sqlite/snapshot.hpp"

#include "core/record/store_clock.hpp"
#include "store/sqlite/failure.hpp"
#include "store/sqlite/read_only_vfs.hpp"
#include "store/sqlite/restore_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace idem::sqlite {
namespace {

using Kind = StoreFileError::Kind;

// The kernel notes changes of a file by a clock that advances at least every 10 ms: after this
// pause no later write can have the same time.
constexpr std::chrono::milliseconds file_clock_step{25};
// The first may meet the log's new beginning, the second the start or the end of the owner.
constexpr int snapshots_max = 4;

}  // namespace

std::expected<std::unique_ptr<Snapshot>, StoreFileError> Snapshot::open(const std::string& path) {
  if (const auto why = interrupted_restore_at(path)) {
    return std::unexpected(StoreFileError{Kind::refused, path + ": " + *why});
  }
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    const int error = errno;
    if (const auto why = why_dangling(path)) {
      return std::unexpected(StoreFileError{Kind::failed, path + ": " + *why});
    }
    const bool is_missing = error == ENOENT || error == ENOTDIR;
    return std::unexpected(StoreFileError{is_missing ? Kind::not_found : Kind::failed,
                                          is_missing
                                              ? path + ": there is no such file"
                                              : file_failure(path, "cannot be read", error)});
  }
  if (!S_ISREG(found.st_mode)) {
    return std::unexpected(
        StoreFileError{Kind::refused, path + ": is no file; write the path of the store's"});
  }
  if (auto why = why_no_access(path, FileUse::reading)) {
    return std::unexpected(StoreFileError{Kind::failed, std::move(*why)});
  }
  auto lock = LogLock::for_reading(path + "-wal");
  if (!lock) return std::unexpected(StoreFileError{Kind::failed, lock.error()});
  std::unique_ptr<Snapshot> snapshot(new Snapshot(path, std::move(*lock)));
  auto begun = snapshot->begin();
  if (!begun) return std::unexpected(std::move(begun.error()));
  return snapshot;
}

std::expected<void, StoreFileError> Snapshot::begin() {
  std::this_thread::sleep_for(file_clock_step);
  auto traced = trace();
  if (!traced) return std::unexpected(std::move(traced.error()));
  at_opening_ = *traced;
  taken_at_ = wall_time();
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(
      path_.c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      read_only_vfs());
  connection_.reset(db);
  if (code != SQLITE_OK) return std::unexpected(failure());
  // Without it, closing would write the log back.
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (!text_value(db,
                  "PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY;"
                  "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
                  "BEGIN; SELECT count(*) FROM sqlite_schema")) {
    return std::unexpected(failure());
  }
  return {};
}

std::expected<Snapshot::Trace, StoreFileError> Snapshot::trace() const {
  struct stat database{};
  if (::stat(path_.c_str(), &database) != 0) {
    return std::unexpected(
        StoreFileError{Kind::not_found, file_failure(path_, "cannot be read", errno)});
  }
  Trace trace;
  trace.of_database = {static_cast<std::int64_t>(database.st_dev),
                       static_cast<std::int64_t>(database.st_ino),
                       database.st_size,
                       database.st_mtim.tv_sec,
                       database.st_mtim.tv_nsec,
                       0};
  struct stat log{};
  const std::string name = path_ + "-wal";
  const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return trace;
  if (::fstat(file, &log) == 0) trace.log_inode = static_cast<std::int64_t>(log.st_ino);
  if (::pread(file, trace.log_head.data(), trace.log_head.size(), 0) < 0) trace.log_inode = -1;
  ::close(file);
  return trace;
}

bool Snapshot::is_sound() const {
  const auto now = trace();
  return now && *now == at_opening_;
}

StoreFileError Snapshot::failure() const {
  auto [kind, why] = failure_of(connection_.get(), path_, FileUse::reading);
  using Failed = SqliteFailure::Kind;
  const bool is_the_files = kind == Failed::no_store || kind == Failed::corrupt;
  return {is_the_files ? Kind::refused : Kind::failed, std::move(why)};
}

std::expected<void, StoreFileError> with_snapshot(
    const std::string& path,
    const std::function<std::expected<void, StoreFileError>(Snapshot&)>& read) {
  for (int i = 0; i < snapshots_max; ++i) {
    auto snapshot = Snapshot::open(path);
    if (!snapshot) {
      // What looks corrupt may be a log that began anew at that moment.
      const bool may_pass = snapshot.error().kind == Kind::refused && i + 1 < snapshots_max;
      if (may_pass) continue;
      return std::unexpected(std::move(snapshot.error()));
    }
    auto done = read(**snapshot);
    if ((*snapshot)->is_sound()) return done;
  }
  return std::unexpected(StoreFileError{
      Kind::failed, path +
                        ": its owner wrote its log back while it was read, each time: it started, "
                        "ended, or wrote more than 1 GiB meanwhile. Run this again at a quieter "
                        "time, or copy to a faster disk"});
}

}  // namespace idem::sqlite
