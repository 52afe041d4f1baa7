#include "store/embedded/path_in_use.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace idem::embedded {

// Asks for no times: the kernel would note that they were seen, and the next write would have to
// give the file a new one, which its sync then makes durable too.
std::optional<PathInUse::Which> PathInUse::find(int folder, const char* path, int how) {
  struct statx found{};
  if (::statx(folder, path, how | AT_STATX_DONT_SYNC, STATX_INO, &found) == 0) {
    return Which{found.stx_dev_major, found.stx_dev_minor, found.stx_ino};
  }
  // A sandbox may refuse statx() alone, and a file must not count as gone, or as not there, then.
  struct stat plain{};
  if (::fstatat(folder, path, &plain, how) != 0) return {};
  return Which{major(plain.st_dev), minor(plain.st_dev), plain.st_ino};
}

std::optional<PathInUse::Which> PathInUse::at(const std::string& path) {
  return find(AT_FDCWD, path.c_str(), 0);
}

PathInUse::PathInUse(std::string path) {
  const auto found = at(path);
  if (!found) return;
  path_ = std::move(path);
  which_ = *found;
}

PathInUse::PathInUse(std::string path, int file) : path_(std::move(path)) {
  if (const auto found = find(file, "", AT_EMPTY_PATH)) which_ = *found;
}

std::string PathInUse::what_is_wrong() const {
  if (path_.empty()) return {};
  const auto found = at(path_);
  const int error = errno;
  if (found == which_) return {};
  if (!found && error != ENOENT && error != ENOTDIR) {
    return path_ + " cannot be looked at any more: " + std::strerror(error) +
           "; nothing says that it is gone: give this process its right again";
  }
  return path_ + " was moved, replaced or deleted while the store had it open";
}

}  // namespace idem::embedded
