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

/// Never makes the disk too full for what the log itself needs.
bool has_room(const std::string& path, std::uint64_t bytes) {
  struct statvfs disk{};
  return ::statvfs(path.c_str(), &disk) == 0 && disk.f_bavail * disk.f_frsize > 4 * bytes;
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

SpareFile::SpareFile(std::string folder, std::uint64_t bytes, Background& background)
    : path_(std::move(folder) + "/spare"), bytes_(bytes), background_(background) {}

void SpareFile::open() {
  ::unlink((path_ + ".part").c_str());
  struct stat facts{};
  if (::stat(path_.c_str(), &facts) != 0) return;
  const bool fits = static_cast<std::uint64_t>(facts.st_size) == bytes_;
  if (!fits) ::unlink(path_.c_str());
  state_ = fits ? State::ready : State::none;
}

void SpareFile::prepare() {
  State none = State::none;
  if (!state_.compare_exchange_strong(none, State::in_the_making)) return;
  background_.post([this] { make(); });
}

// Without room for it the log goes on in a file that grows, and fails only where that does.
void SpareFile::make() {
  const std::string part = path_ + ".part";
  const int file = ::open(part.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool good = file >= 0 && has_room(part, bytes_) && write_zeros(file, bytes_);
  if (file >= 0) ::close(file);
  good = good && ::rename(part.c_str(), path_.c_str()) == 0;
  if (!good) ::unlink(part.c_str());
  state_.store(good ? State::ready : State::none, std::memory_order_release);
}

std::string SpareFile::take() {
  state_ = State::none;
  return path_;
}

}  // namespace idem::segments
