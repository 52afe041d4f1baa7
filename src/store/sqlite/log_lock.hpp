#pragma once

#include <expected>
#include <optional>
#include <string>

namespace idem::sqlite {

/// While another process reads the file, its owner lets the log grow to this many pages (1 GiB) and
/// not further: a reader that is stopped must not fill the disk. A start reads the log, so it stays
/// at some seconds.
inline constexpr int wal_pages_while_read_max = 262'144;

/// The agreement between the owner of a store's file and other processes that read it: the owner
/// writes the log back into the database only while nobody reads, so that database and log together
/// stay the content of one moment. It is a lock (flock) of the log's file, which SQLite itself does
/// not lock, and the kernel ends it with the process. The owner never waits for it.
class LogLock {
 public:
  /// The owner's. None: a reader has it. Without a log's file it is granted.
  static std::optional<LogLock> for_writing_back(const std::string& log);
  /// A reader's. Waits while the owner writes back. Without a log's file it is granted; the error
  /// is a sentence.
  static std::expected<LogLock, std::string> for_reading(const std::string& log);

  ~LogLock();
  LogLock(LogLock&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  LogLock& operator=(LogLock&&) = delete;

 private:
  explicit LogLock(int file) : file_(file) {}
  int file_;
};

}  // namespace idem::sqlite
