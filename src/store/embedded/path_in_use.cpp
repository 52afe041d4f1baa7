#include "store/embedded/path_in_use.hpp"

#include <sys/stat.h>

#include <utility>

namespace idem::embedded {

PathInUse::PathInUse(std::string path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return;
  path_ = std::move(path);
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

std::string PathInUse::what_is_wrong() const {
  if (path_.empty()) return {};
  struct stat found{};
  if (::stat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_) {
    return {};
  }
  return path_ + " was moved, replaced or deleted while the store had it open";
}

}  // namespace idem::embedded
