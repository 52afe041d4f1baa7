#include "store/log/version_files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace idem::segments {
namespace {

std::uint64_t offset_of(std::uint64_t place) { return place & 0xffffffffU; }

}  // namespace

VersionFiles::VersionFiles(std::string folder, std::uint64_t file_bytes)
    : files_(std::move(folder), ".records"), file_bytes_(file_bytes) {
  thread_ = std::jthread([this](const std::stop_token& stop) { sync_on_request(stop); });
}

VersionFiles::~VersionFiles() {
  thread_.request_stop();
  thread_.join();
  for (const int file : to_sync_) ::close(file);
}

void VersionFiles::go_on_at(std::uint64_t place) {
  current_ = file_of(place);
  end_ = offset_of(place);
}

std::uint64_t VersionFiles::next() const noexcept {
  const bool is_full = current_ == 0 || end_ >= file_bytes_;
  return is_full ? std::uint64_t{current_ + 1} << 32U : std::uint64_t{current_} << 32U | end_;
}

void VersionFiles::append(std::string_view versions, std::uint64_t commit) {
  last_commit_ = commit;
  if (versions.empty()) return;
  const std::uint64_t place = next();
  current_ = file_of(place);
  if (!files_.has(current_)) files_.make(current_);
  write(current_, offset_of(place), versions);
  end_ = offset_of(place) + versions.size();
}

void VersionFiles::write_again(std::uint64_t place, std::string_view versions) {
  if (versions.empty()) return;
  const std::uint32_t file = file_of(place);
  if (!files_.has(file)) {
    // Those before the last are deleted once nothing is in them; the last may not have been made.
    if (!files_.is_empty() && file < files_.last()) return;
    files_.make(file);
  }
  write(file, offset_of(place), versions);
}

void VersionFiles::write(std::uint32_t number, std::uint64_t offset, std::string_view bytes) {
  const int file = files_.file(number);
  if (file < 0) files_.fail_closed("opening a file");
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) files_.fail_closed("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  if (std::ranges::find(unsynced_, number) == unsynced_.end()) unsynced_.push_back(number);
}

bool VersionFiles::read(std::uint64_t place, std::size_t size, std::string& into) {
  const int file = files_.file(file_of(place));
  return file >= 0 && read_at(file, offset_of(place), size, into);
}

void VersionFiles::sync_later() {
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t number : std::exchange(unsynced_, {})) {
    const int file = files_.file(number);
    if (file < 0) continue;  // Deleted since: nothing is in it.
    const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (own < 0) files_.fail_closed("opening a file");
    to_sync_.push_back(own);
  }
  asked_to_ = last_commit_;
  wake_.notify_one();
}

void VersionFiles::wait_for_sync() {
  std::unique_lock lock(mutex_);
  synced_.wait(lock, [this] { return synced_to_.load() >= asked_to_; });
}

void VersionFiles::sync_on_request(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "idem-sync");
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return asked_to_ > synced_to_.load(); })) {
    const std::uint64_t to = asked_to_;
    const std::vector<int> files = std::exchange(to_sync_, {});
    lock.unlock();
    for (const int file : files) {
      if (::fdatasync(file) != 0) files_.fail_closed("sync");
      ::close(file);
    }
    synced_to_.store(to, std::memory_order_release);
    lock.lock();
    synced_.notify_all();
  }
}

}  // namespace idem::segments
