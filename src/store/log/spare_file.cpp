#include "store/log/spare_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace idem::segments {
namespace {

/// Written and synced at once, so that commits do not wait long behind it.
constexpr std::size_t slice_bytes = 1UL << 20U;

constexpr const char* name = "spare";
constexpr const char* name_of_part = "spare.part";

/// Never makes the disk too full for what the log itself needs.
bool has_room(int file, std::uint64_t bytes) {
  struct statvfs disk{};
  return ::fstatvfs(file, &disk) == 0 && disk.f_bavail * disk.f_frsize > 4 * bytes;
}

bool write_zeros(int file, std::uint64_t bytes) {
  const std::string zeros(slice_bytes, '\0');
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t size = std::min<std::uint64_t>(slice_bytes, bytes - at);
    const ssize_t n = ::pwrite(file, zeros.data(), size, static_cast<off_t>(at));
    if (n <= 0 || ::fdatasync(file) != 0) return false;
    at += static_cast<std::uint64_t>(n);
  }
  // The log writes past the kernel's cache.
  (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  return true;
}

}  // namespace

void SpareFile::open() {
  const int folder = files_.descriptor();
  ::unlinkat(folder, name_of_part, 0);
  struct stat facts{};
  if (::fstatat(folder, name, &facts, 0) != 0) return;
  const bool fits = static_cast<std::uint64_t>(facts.st_size) == bytes_;
  if (!fits) ::unlinkat(folder, name, 0);
  state_ = fits ? State::ready : State::none;
}

void SpareFile::prepare() {
  State none = State::none;
  if (!state_.compare_exchange_strong(none, State::in_the_making)) return;
  background_.post([this] { make(); });
}

// Without room for it the log goes on in a file that grows, and fails only where that does.
void SpareFile::make() {
  const int folder = files_.descriptor();
  const int file = ::openat(folder, name_of_part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool good = file >= 0 && has_room(file, bytes_) && write_zeros(file, bytes_);
  if (file >= 0) ::close(file);
  good = good && ::renameat(folder, name_of_part, folder, name) == 0;
  if (!good) ::unlinkat(folder, name_of_part, 0);
  state_.store(good ? State::ready : State::none, std::memory_order_release);
}

std::string SpareFile::take() {
  state_ = State::none;
  return name;
}

}  // namespace idem::segments
