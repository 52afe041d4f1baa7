#include "store/sqlite/log_lock.hpp"

#include "store/file_access.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace idem::sqlite {
namespace {

// The owner's disk takes seconds to take back the largest log.
constexpr int waits_max = 3'000;
constexpr std::chrono::milliseconds wait{20};

}  // namespace

LogLock::~LogLock() {
  if (file_ >= 0) ::close(file_);
}

std::optional<LogLock> LogLock::for_writing_back(const std::string& log) {
  LogLock lock(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.file_ >= 0 && ::flock(lock.file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return std::nullopt;
  }
  return lock;
}

std::expected<LogLock, std::string> LogLock::for_reading(const std::string& log) {
  LogLock lock(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.file_ < 0) {
    if (errno == ENOENT) return lock;
    return std::unexpected(file_failure(log, "cannot be read", errno));
  }
  for (int waited = 0; ::flock(lock.file_, LOCK_SH | LOCK_NB) != 0; ++waited) {
    if (errno != EWOULDBLOCK) {
      return std::unexpected(file_failure(log, "cannot be locked", errno));
    }
    if (waited == waits_max) {
      return std::unexpected(log + ": its owner has been writing it back for a minute; try again");
    }
    std::this_thread::sleep_for(wait);
  }
  return lock;
}

}  // namespace idem::sqlite
