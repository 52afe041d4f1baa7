#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace idem::sqlite {

/// SQLite's lock of a database that has one writer, taken or asked for without SQLite: the file may
/// be damaged. While it is held, no store opens the file. A process that has the store open itself
/// must not use it: closing any descriptor of the file ends SQLite's locks there.
class OwnerLock {
 public:
  explicit OwnerLock(const std::string& path) : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (file_ < 0) {
      file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      may_lock_ = false;
    }
  }
  ~OwnerLock() {
    if (file_ >= 0) ::close(file_);
  }
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

  bool is_open() const { return file_ >= 0; }
  /// An errno, EWOULDBLOCK if a process has it; 0: it is taken.
  int take() const {
    if (!may_lock_) return EACCES;
    struct flock range = all();
    if (::fcntl(file_, F_OFD_SETLK, &range) == 0) return 0;
    return errno == EACCES ? EWOULDBLOCK : errno;
  }
  /// Whether another process has it; a file that cannot be asked counts as free.
  bool is_taken() const {
    struct flock range = all();
    return ::fcntl(file_, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  }

 private:
  static struct flock all() {
    // The bytes of sqlite.org/lockingv3.html: pending, reserved, and 510 shared ones.
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = 0x40000000;
    range.l_len = 512;
    return range;
  }

  int file_;
  bool may_lock_ = true;  ///< A lock of a writer needs a descriptor that may write.
};

}  // namespace idem::sqlite
