#pragma once

#include "store/log/making.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace idem::segments {

/// RocksDB's lock of a database that has one process, taken without RocksDB: the store may be
/// damaged. While it is held, no process opens the store.
class OwnerLock {
 public:
  explicit OwnerLock(const std::string& path)
      : directory_(path),
        file_(::open((path + "/index/LOCK").c_str(), O_RDWR | O_CLOEXEC)),
        error_(file_ < 0 ? errno : 0) {}
  ~OwnerLock() {
    if (file_ >= 0) ::close(file_);
  }
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

  /// A store without the file is damaged, and no process has it open. An errno, EWOULDBLOCK if a
  /// process has it; 0: it is taken.
  int take() const {
    // A file in its place has no process either.
    if (!directory_.take() && errno != ENOTDIR) return errno;
    if (file_ < 0) return error_ == ENOENT || error_ == ENOTDIR ? 0 : error_;
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    if (::fcntl(file_, F_OFD_SETLK, &range) == 0) return 0;
    return errno == EACCES ? EWOULDBLOCK : errno;
  }

 private:
  DirectoryLock directory_;
  int file_;
  int error_;
};

}  // namespace idem::segments
