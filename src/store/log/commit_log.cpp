#include "store/log/commit_log.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "store/file_access.hpp"
#include "store/log/files.hpp"

#include <idem/fingerprint.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>

namespace idem::segments {
namespace {

/// A file grows by this, so that few syncs have a new length to make durable.
constexpr std::uint64_t growth_bytes = 4UL << 20U;
/// A log that got so much in one file is in use, so that a file for the next part is worth its
/// disk.
constexpr std::uint64_t prepare_after = 1UL << 20U;
/// Of the log, the files of versions, the table of ids, and of keys and values of the index.
constexpr std::uint32_t format_of_one = 2;  ///< Of a store that never had several shards.
/// A program that does not know of shards would look for every key in the first one.
constexpr std::uint32_t format_of_several = 3;
constexpr std::uint64_t format_magic = 0x676f6c2d6d656469;  // "idem-log"
constexpr std::size_t format_bytes = sizeof format_magic + sizeof format_of_one + 16;
constexpr std::uint32_t frame_magic = 0x314d4449;  // "IDM1"
/// A frame is written up to the end of its last page: so no page with an earlier frame is ever
/// written again, and the kernel need not read a page in order to write a part of it.
constexpr std::size_t alignment = 4096;
/// Lengths have 32 bits, and so has the offset of a version in its file.
constexpr std::size_t frame_bytes_max = 3UL << 30U;

/// In front of each frame.
struct Head {
  std::uint32_t versions = 0;  ///< Their bytes; the rest follows.
  std::uint32_t rest = 0;
  std::uint64_t number = 0;
  std::uint64_t checksum = 0;

  static constexpr std::size_t bytes = 32;
  std::size_t body() const noexcept { return std::size_t{versions} + rest; }
  std::size_t whole() const noexcept {
    return (bytes + body() + alignment - 1) / alignment * alignment;
  }
};

using Salt = StoreTag;

std::uint64_t checksum_of_frame(const Head& head, std::string_view versions, std::string_view rest,
                                const Salt& salt) {
  RecordId id;  // What the checksum covers besides the bytes.
  ByteWriter out(reinterpret_cast<char*>(id.bytes.data()));
  out.number(head.number);
  out.number(head.versions);
  out.number(head.rest);
  for (std::size_t i = 0; i < salt.size(); ++i) id.bytes[i] ^= salt[i];
  return checksum_of(id, versions, rest);
}

std::array<char, Head::bytes> to_bytes(const Head& head) {
  std::array<char, Head::bytes> bytes{};
  ByteWriter out(bytes.data());
  out.number(frame_magic);
  out.number(head.versions);
  out.number(head.rest);
  out.number(std::uint32_t{0});
  out.number(head.number);
  out.number(head.checksum);
  return bytes;
}

std::optional<Head> parse_head(std::string_view bytes) {
  if (bytes.size() < Head::bytes) return std::nullopt;
  ByteReader in(bytes);
  if (in.number<std::uint32_t>() != frame_magic) return std::nullopt;
  Head head;
  head.versions = in.number<std::uint32_t>();
  head.rest = in.number<std::uint32_t>();
  (void)in.number<std::uint32_t>();
  head.number = in.number<std::uint64_t>();
  head.checksum = in.number<std::uint64_t>();
  return head;
}

/// The frame at the beginning of `bytes`, if it is whole.
std::optional<CommitLog::Frame> frame_in(std::string_view bytes, const Salt& salt) {
  const auto head = parse_head(bytes);
  if (!head || bytes.size() < Head::bytes + head->body()) return std::nullopt;
  CommitLog::Frame frame;
  frame.number = head->number;
  frame.versions = bytes.substr(Head::bytes, head->versions);
  frame.rest = bytes.substr(Head::bytes + head->versions, head->rest);
  const auto checksum = checksum_of_frame(*head, frame.versions, frame.rest, salt);
  if (checksum != head->checksum) return std::nullopt;
  return frame;
}

/// False: they are none.
bool stop_direct_writes(int file) {
  const int how = ::fcntl(file, F_GETFL);
  return how >= 0 && (how & O_DIRECT) != 0 && ::fcntl(file, F_SETFL, how & ~O_DIRECT) == 0;
}

/// Whether a whole frame that is newer than `number` lies behind what cannot be read.
bool has_newer_frame(std::string_view rest, std::uint64_t number, const Salt& salt) {
  for (std::size_t at = 0; at + Head::bytes <= rest.size(); at += alignment) {
    const auto head = parse_head(rest.substr(at));
    if (head && head->number > number && frame_in(rest.substr(at), salt)) return true;
  }
  return false;
}

}  // namespace

std::expected<void, std::string> CommitLog::replay(const std::function<void(const Frame&)>& see) {
  if (files_.is_empty()) return {};
  bool is_first = true;
  for (std::uint32_t file = files_.first(); files_.has(file); ++file) {
    const auto bytes = files_.whole(file);
    if (!bytes) {
      return std::unexpected(
          fmt::format("{} cannot be read: {}", files_.path_of(file), std::strerror(errno)));
    }
    if (current_ != 0) last_in_[current_] = number_;
    current_ = file;
    end_ = 0;
    room_ = bytes->size();
    const auto from_here = [&] {
      return std::string_view(*bytes).substr(std::min<std::size_t>(end_, bytes->size()));
    };
    while (const auto frame = frame_in(from_here(), salt_)) {
      if (!is_first && frame->number != number_ + 1) break;
      is_first = false;
      number_ = frame->number;
      see(*frame);
      end_ += parse_head(from_here())->whole();
    }
    if (has_newer_frame(from_here(), number_, salt_)) {
      return std::unexpected(fmt::format("{} is damaged at byte {}", files_.path_of(file), end_));
    }
  }
  if (files_.last() != current_) {
    return std::unexpected(files_.path_of(current_ + 1) + " is missing");
  }
  in_use_ = embedded::PathInUse(files_.path_of(current_));
  return {};
}

CommitLog::CommitLog(const std::string& folder, std::uint64_t file_bytes, Background& background)
    : files_(folder, ".commits", true),
      spare_(files_, file_bytes + growth_bytes, background),
      background_(background),
      file_bytes_(file_bytes) {}

std::expected<void, std::string> CommitLog::open() {
  auto opened = files_.open();
  if (!opened) return opened;
  spare_.open();
  return read_format(true);
}

std::expected<void, std::string> CommitLog::look_at_format() { return read_format(false); }

std::string CommitLog::where_it_ends() const {
  if (current_ == 0) return files_.folder() + ", which has no file of it";
  return fmt::format("{} at byte {}", files_.path_of(current_), end_);
}

/// With a secret of the store's: else the bytes of a client's body could be a frame, which a start
/// would find in a file that is used again.
std::expected<void, std::string> CommitLog::read_format(bool may_make) {
  const std::string path = files_.folder() + "/format";
  errno = 0;
  const auto found = whole_file(path);
  if (!found && errno != 0 && errno != ENOENT) {
    return std::unexpected(path + " cannot be read: " + words_on(errno, path, files_.folder()));
  }
  std::string bytes = found.value_or(std::string());
  if (bytes.empty()) {
    if (!may_make || !files_.is_empty()) return std::unexpected(path + " is missing");
    random_bytes(salt_);
    return write_format(format_of_one);
  }
  const auto sound = without_checksum(RecordId{}, bytes);
  if (!sound || sound->size() != format_bytes) return std::unexpected(path + " is damaged");
  ByteReader in(*sound);
  const auto magic_found = in.number<std::uint64_t>();
  format_ = in.number<std::uint32_t>();
  if (magic_found != format_magic || format_ < format_of_one || format_ > format_of_several) {
    return std::unexpected(fmt::format("{}: has format {}, and this program knows {} and {}",
                                       files_.folder(), format_, format_of_one, format_of_several));
  }
  in.bytes(salt_);
  return {};
}

std::expected<void, std::string> CommitLog::allow_shards() {
  if (format_ == format_of_several) return {};
  return write_format(format_of_several);
}

std::expected<void, std::string> CommitLog::write_format(std::uint32_t format) {
  const std::string path = files_.folder() + "/format";
  std::string bytes(format_bytes, '\0');
  ByteWriter out(bytes.data());
  out.number(format_magic);
  out.number(format);
  out.bytes(salt_);
  append_checksum(RecordId{}, bytes);
  format_ = format;
  if (write_whole(files_.folder(), path, bytes)) return {};
  return std::unexpected(
      fmt::format("{} cannot be written: {}", path, words_on(errno, path, files_.folder())));
}

// A file that a crash left without a frame is used as it is. One that grows ends early.
bool CommitLog::begins_file() {
  const bool has_whole = spare_.is_ready() || durable_name_ == current_ + 1;
  needs_file_ = current_ == 0 || end_ >= file_bytes_ || (end_ > 0 && grows() && has_whole);
  return needs_file_ || end_ == 0;
}

void CommitLog::begin_file() {
  const std::uint32_t next = current_ + 1;
  if (current_ != 0) last_in_[current_] = number_;
  current_ = next;
  end_ = 0;
  needs_file_ = false;
  asked_for_spare_ = false;
  if (!files_.has(next) && !lay_out(next)) {
    files_.make(next);
    durable_name_ = next;
  }
  struct stat facts{};
  if (::fstat(files_.file(next), &facts) != 0) files_.fail_closed("looking at a file");
  room_ = static_cast<std::uint64_t>(facts.st_size);
  // The name of one that was laid out may be gone since.
  in_use_ = embedded::PathInUse(files_.path_of(next), files_.file(next));
  make_name_durable();
  // After a burst there are more than the next ones will need.
  while (last_in_.size() > 2 && std::next(last_in_.begin())->second <= reusable_to_) {
    remove_oldest();
  }
}

void CommitLog::make_name_durable() {
  if (durable_name_.load(std::memory_order_acquire) == current_) return;
  files_.sync_names();
  durable_name_ = current_;
}

/// One after the other: with a gap between the files a start could not tell whether one is lost.
void CommitLog::remove_oldest() {
  files_.remove(last_in_.begin()->first);
  last_in_.erase(last_in_.begin());
  files_.sync_names();
}

void CommitLog::prepare_next() {
  const std::uint32_t next = current_ + 1;
  if (files_.has(next)) return;
  if (!lay_out(next)) {
    if (!std::exchange(asked_for_spare_, true)) spare_.prepare();
    return;
  }
  (void)files_.file(next);  // From now on this one, whatever comes to its path.
  background_.post([this, next] {
    files_.sync_names();
    durable_name_.store(next, std::memory_order_release);
  });
}

/// Of the oldest file, if no start needs it, or of the spare one. The name is not durable yet.
bool CommitLog::lay_out(std::uint32_t number) {
  // Until the present file has a frame, a start begins with the one before.
  const std::size_t needed = end_ == 0 ? 1 : 0;
  while (last_in_.size() > needed && has_reusable()) {
    const std::uint32_t oldest = last_in_.begin()->first;
    struct stat facts{};
    if (::fstat(files_.file(oldest), &facts) != 0) files_.fail_closed("looking at a file");
    if (static_cast<std::uint64_t>(facts.st_size) >= file_bytes_) {
      last_in_.erase(oldest);
      files_.rename(oldest, number);
      return true;
    }
    remove_oldest();
  }
  if (!spare_.is_ready()) return false;
  files_.adopt(spare_.take(), number);
  return true;
}

void CommitLog::make_room(std::uint64_t bytes) {
  if (bytes <= room_) return;
  room_ = std::max(bytes, room_ + growth_bytes);
  const int file = files_.file(current_);
  while (::fallocate(file, 0, 0, static_cast<off_t>(room_)) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP) break;  // The writes themselves make it.
    files_.fail_closed("making room");
  }
}

void CommitLog::append(std::string_view versions, std::string_view rest) {
  // A larger one could not be read again.
  if (versions.size() + rest.size() >= frame_bytes_max) files_.fail_closed("too large a commit");
  if (needs_file_) {
    begin_file();
  } else if (end_ == 0) {
    make_name_durable();  // A start found it: its process may have been killed before it did so.
  }
  Head head{static_cast<std::uint32_t>(versions.size()), static_cast<std::uint32_t>(rest.size()),
            ++number_, 0};
  head.checksum = checksum_of_frame(head, versions, rest, salt_);
  make_room(end_ + head.whole());
  char* const frame = frame_buffer(head.whole());
  char* at = std::ranges::copy(to_bytes(head), frame).out;
  at = std::ranges::copy(versions, at).out;
  at = std::ranges::copy(rest, at).out;
  std::fill(at, frame + head.whole(), '\0');
  write_durably({frame, head.whole()});
  end_ += head.whole();
  const bool is_only = last_in_.empty() && !files_.has(current_ + 1);
  if (end_ > prepare_after && is_only && !std::exchange(asked_for_spare_, true)) spare_.prepare();
}

/// Aligned, as a direct write needs it.
char* CommitLog::frame_buffer(std::size_t bytes) {
  if (bytes > buffer_bytes_) {
    buffer_bytes_ = std::bit_ceil(bytes);
    buffer_.reset(static_cast<char*>(::operator new(buffer_bytes_, std::align_val_t{alignment})));
  }
  return buffer_.get();
}

void CommitLog::DropBuffer::operator()(char* buffer) const noexcept {
  ::operator delete(buffer, std::align_val_t{alignment});
}

void CommitLog::write_durably(std::string_view frame) {
  const int file = files_.file(current_);
  auto at = static_cast<off_t>(end_);
  while (!frame.empty()) {
    const iovec part{const_cast<char*>(frame.data()), frame.size()};
    const ssize_t n = ::pwritev2(file, &part, 1, at, has_dsync_ ? RWF_DSYNC : 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && has_dsync_ && (errno == EOPNOTSUPP || errno == ENOSYS)) {
      has_dsync_ = false;
      continue;
    }
    // A disk with larger blocks than a page.
    if (n < 0 && errno == EINVAL && stop_direct_writes(file)) continue;
    if (n <= 0) files_.fail_closed("write");
    frame.remove_prefix(static_cast<std::size_t>(n));
    at += n;
  }
  if (!has_dsync_ && ::fdatasync(file) != 0) files_.fail_closed("sync");
}

}  // namespace idem::segments
