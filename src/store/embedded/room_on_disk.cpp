#include "store/embedded/room_on_disk.hpp"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace idem::embedded {

std::optional<std::string> why_too_full(const std::string& folder, std::uint64_t bytes,
                                        std::uint64_t largest_file, std::string_view what) {
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) == 0 && disk.f_blocks > 0) {
    const auto blocks = ::geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
    const std::uint64_t left = std::uint64_t{blocks} * disk.f_frsize;
    if (left < bytes) {
      return "the disk is full: " + std::to_string(left) + " bytes are left, and " +
             std::string(what) + " needs " + std::to_string(bytes);
    }
  }
  rlimit file{};
  if (::getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur < largest_file) {
    return "the disk is full for this process: it may write files of " +
           std::to_string(file.rlim_cur) + " bytes (RLIMIT_FSIZE), and " + std::string(what) +
           " needs " + std::to_string(largest_file);
  }
  return std::nullopt;
}

}  // namespace idem::embedded
