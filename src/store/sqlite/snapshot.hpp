#pragma once

#include "store/sqlite/connection.hpp"
#include "store/sqlite/log_lock.hpp"
#include "store/store_file.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>

namespace idem::sqlite {

/// A store's file as it was at one moment, for reading beside its owner, who goes on committing.
///
/// The owner appends to its log meanwhile and leaves the database alone (LogLock); SQLite found the
/// end of the log at the opening and reads nothing behind it. Two things can still spoil it: the
/// owner starts the log anew, once, if all of it was in the database at the opening; or it must
/// write the log back, because it ends, begins, or the log has become too long. is_sound() sees
/// both, so nothing that was read counts before it was asked.
class Snapshot {
 public:
  static std::expected<std::unique_ptr<Snapshot>, StoreFileError> open(const std::string& path);

  sqlite3* db() const noexcept { return connection_.get(); }
  /// By this machine's clock: everything that was durable then is in it.
  StoreTime taken_at() const noexcept { return taken_at_; }
  bool is_sound() const;

 private:
  struct Trace {
    std::array<std::int64_t, 6> of_database{};
    std::int64_t log_inode = 0;
    std::array<char, 32> log_head{};
    bool operator==(const Trace&) const = default;
  };
  Snapshot(std::string path, LogLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::expected<void, StoreFileError> begin();
  std::expected<Trace, StoreFileError> trace() const;
  StoreFileError failure() const;

  std::string path_;
  LogLock lock_;
  Trace at_opening_;
  StoreTime taken_at_{};
  Connection connection_;
};

/// Calls `read` with a snapshot until that was sound at the end; its error ends it. Gives up when
/// the owner keeps writing back.
std::expected<void, StoreFileError> with_snapshot(
    const std::string& path,
    const std::function<std::expected<void, StoreFileError>(Snapshot&)>& read);

}  // namespace idem::sqlite
