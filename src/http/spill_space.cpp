#include "http/spill_space.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace idem::http {
namespace {

/// On failure -1 and errno. O_EXCL: no process can give the file a name later.
int open_unlinked(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  const bool unsupported = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
  if (fd >= 0 || !unsupported) return fd;
  std::string name = directory + "/idem-body-" + std::string(6, 'X');  // As mkostemp wants it.
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  // A crash between these two lines leaves an empty file, without any client's bytes.
  if (named < 0 || ::unlink(name.c_str()) == 0) return named;
  ::close(named);
  return -1;
}

bool leaves_enough(int fd) noexcept {
  struct statvfs disk{};
  if (::fstatvfs(fd, &disk) != 0) return false;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize >= limits::spill_disk_free_min;
}

}  // namespace

std::expected<std::unique_ptr<SpillSpace>, std::string> SpillSpace::open(std::string directory,
                                                                         std::uint64_t bytes_max) {
  std::unique_ptr<SpillSpace> space(new SpillSpace(std::move(directory), bytes_max));
  const auto probe = space->make_file();
  // One byte: on a full disk a file can be made and not be written.
  if (!probe || ::write(probe->fd_, "x", 1) != 1) {
    return std::unexpected("large request bodies cannot be written in \"" + space->directory_ +
                           "\": " + std::generic_category().message(errno));
  }
  return space;
}

std::shared_ptr<SpillFile> SpillSpace::make_file() {
  const int fd = open_unlinked(directory_);
  if (fd < 0) return nullptr;
  return std::shared_ptr<SpillFile>(new SpillFile(*this, fd));
}

bool SpillSpace::take(std::size_t bytes) noexcept {
  if (taken_.fetch_add(bytes) + bytes <= bytes_max_) return true;
  give(bytes);
  errno = ENOSPC;
  return false;
}

void SpillSpace::give(std::size_t bytes) noexcept { taken_.fetch_sub(bytes); }

// The last user of an unlinked file also frees its blocks, for which the kernel may wait for the
// disk.
SpillFile::~SpillFile() {
  space_.give(size_);
  space_.threads_.post([fd = fd_, size = size_, mapping = mapping_] {
    if (mapping != nullptr) ::munmap(const_cast<char*>(mapping), size);
    if (fd >= 0) ::close(fd);
  });
}

bool SpillFile::append(std::string_view bytes) noexcept {
  if (!leaves_enough(fd_) || !space_.take(bytes.size())) return false;
  size_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool SpillFile::map() noexcept {
  void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd_, 0);
  if (at == MAP_FAILED) return false;
  ::madvise(at, size_, MADV_SEQUENTIAL);
  mapping_ = static_cast<const char*>(at);
  // The mapping keeps the file.
  ::close(fd_);
  fd_ = -1;
  return true;
}

}  // namespace idem::http
