#include "store/log/progress_mark.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "store/file_access.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace idem::segments {
namespace {

constexpr std::uint64_t mark_magic = 0x316b72616d'6d6469;  // "idmmark1"
/// Of different blocks of the disk.
constexpr std::size_t slot_bytes = 4096;
constexpr std::size_t slots = 2;
constexpr std::size_t value_bytes = 5 * sizeof(std::uint64_t);

struct Slot {
  std::uint64_t sequence = 0;
  ProgressMark::Value value;
};

/// No moment is written as zero: none is as early.
std::string to_bytes(const Slot& slot, const StoreTag& tag) {
  std::string bytes(value_bytes, '\0');
  ByteWriter out(bytes.data());
  out.number(mark_magic);
  out.number(slot.sequence);
  out.number(slot.value.commit);
  out.number(to_bits(slot.value.at));
  out.number(slot.value.stopped_at ? to_bits(*slot.value.stopped_at) : 0);
  append_checksum(RecordId{tag}, bytes);
  return bytes;
}

std::optional<Slot> slot_in(std::string_view bytes, const StoreTag& tag) {
  if (bytes.size() < value_bytes + checksum_bytes) return std::nullopt;
  const auto sound = without_checksum(RecordId{tag}, bytes.substr(0, value_bytes + checksum_bytes));
  if (!sound) return std::nullopt;
  ByteReader in(*sound);
  if (in.number<std::uint64_t>() != mark_magic) return std::nullopt;
  Slot slot;
  slot.sequence = in.number<std::uint64_t>();
  slot.value.commit = in.number<std::uint64_t>();
  slot.value.at = from_bits(in.number<std::uint64_t>());
  const auto stopped_at = in.number<std::uint64_t>();
  if (stopped_at != 0) slot.value.stopped_at = from_bits(stopped_at);
  return slot;
}

std::string path_in(const std::string& shard) { return shard + "/mark"; }

}  // namespace

ProgressMark::ProgressMark(std::string shard, Millis each) : path_(path_in(shard)), each_(each) {}

bool ProgressMark::make(const std::string& shard, const StoreTag& tag, const Value& value) {
  std::string bytes = to_bytes({.sequence = 0, .value = value}, tag);
  bytes.resize(slots * slot_bytes, '\0');
  return write_whole(shard, path_in(shard), bytes);
}

std::expected<void, std::string> ProgressMark::read(const StoreTag& tag) {
  tag_ = tag;
  const auto bytes = whole_file(path_);
  if (!bytes) {
    return std::unexpected(errno == ENOENT
                               ? path_ + " is missing, which says up to where its log was durable"
                               : path_ + " cannot be read: " + words_on(errno, path_, path_));
  }
  std::optional<Slot> newest;
  for (std::size_t i = 0; i < slots; ++i) {
    const auto part = std::string_view(*bytes).substr(std::min(i * slot_bytes, bytes->size()));
    const auto slot = slot_in(part, tag);
    if (slot && (!newest || slot->sequence > newest->sequence)) newest = slot;
  }
  if (!newest) {
    return std::unexpected(path_ + " is damaged, which says up to where its log was durable");
  }
  value_ = newest->value;
  sequence_ = newest->sequence;
  commit_ = value_.commit;
  return {};
}

std::expected<void, std::string> ProgressMark::start() {
  file_ = OwnFile(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  if (file_.get() < 0) {
    return std::unexpected(path_ + ": cannot be written to: " + words_on(errno, path_, path_));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  return {};
}

// The thread looks for progress once more after it has said that it is idle, so that one of both
// sees the other.
void ProgressMark::note(std::uint64_t commit) noexcept {
  commit_.store(commit);
  if (!is_idle_.load()) return;
  const std::lock_guard lock(mutex_);
  wake_.notify_one();
}

void ProgressMark::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  if (commit_.load() != value_.commit) write(commit_.load());
}

void ProgressMark::stop_clean() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  value_.stopped_at = wall_time();
  write(commit_.load());
}

void ProgressMark::serve(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "idem-mark");
  std::unique_lock lock(mutex_);
  const auto has_progress = [this] { return commit_.load() != value_.commit; };
  while (!stop.stop_requested()) {
    is_idle_ = true;
    const bool is_due = wake_.wait(lock, stop, has_progress);
    is_idle_ = false;
    if (!is_due) return;
    (void)wake_.wait_for(lock, stop, each_, [] { return false; });
    if (stop.stop_requested()) return;
    lock.unlock();
    write(commit_.load());
    lock.lock();
  }
}

void ProgressMark::write(std::uint64_t commit) {
  value_.commit = commit;
  value_.at = wall_time();
  ++sequence_;
  const std::string bytes = to_bytes({.sequence = sequence_, .value = value_}, tag_);
  const auto at = static_cast<off_t>(sequence_ % slots * slot_bytes);
  ssize_t n = 0;
  do n = ::pwrite(file_.get(), bytes.data(), bytes.size(), at);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(bytes.size()) || ::fdatasync(file_.get()) != 0) {
    fail_closed(path_, "writing the mark of the log's progress");
  }
}

}  // namespace idem::segments
