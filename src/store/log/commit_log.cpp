#include "store/log/commit_log.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

namespace idem::segments {
namespace {

/// A file grows by this, so that few syncs have a new length to make durable.
constexpr std::uint64_t growth_bytes = 4UL << 20U;
constexpr std::uint32_t magic = 0x314d4449;  // "IDM1"
constexpr std::size_t alignment = 8;

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

std::uint64_t checksum_of_frame(const Head& head, std::string_view versions,
                                std::string_view rest) {
  RecordId id;  // What the checksum covers besides the bytes.
  ByteWriter out(reinterpret_cast<char*>(id.bytes.data()));
  out.number(head.number);
  out.number(head.versions);
  out.number(head.rest);
  return checksum_of(id, versions, rest);
}

std::array<char, Head::bytes> to_bytes(const Head& head) {
  std::array<char, Head::bytes> bytes{};
  ByteWriter out(bytes.data());
  out.number(magic);
  out.number(head.versions);
  out.number(head.rest);
  out.number(std::uint32_t{0});
  out.number(head.number);
  out.number(head.checksum);
  return bytes;
}

std::optional<Head> parse(std::string_view bytes) {
  if (bytes.size() < Head::bytes) return std::nullopt;
  ByteReader in(bytes);
  if (in.number<std::uint32_t>() != magic) return std::nullopt;
  Head head;
  head.versions = in.number<std::uint32_t>();
  head.rest = in.number<std::uint32_t>();
  (void)in.number<std::uint32_t>();
  head.number = in.number<std::uint64_t>();
  head.checksum = in.number<std::uint64_t>();
  return head;
}

/// The frame at the beginning of `bytes`, if it is whole.
std::optional<CommitLog::Frame> frame_in(std::string_view bytes) {
  const auto head = parse(bytes);
  if (!head || bytes.size() < Head::bytes + head->body()) return std::nullopt;
  CommitLog::Frame frame;
  frame.number = head->number;
  frame.versions = bytes.substr(Head::bytes, head->versions);
  frame.rest = bytes.substr(Head::bytes + head->versions, head->rest);
  if (checksum_of_frame(*head, frame.versions, frame.rest) != head->checksum) return std::nullopt;
  return frame;
}

std::optional<std::string> whole_file(int file) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n =
        ::pread(file, bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    got += static_cast<std::size_t>(n);
  }
  return bytes;
}

/// Whether a whole frame that is newer than `number` lies behind what cannot be read.
bool has_newer_frame(std::string_view rest, std::uint64_t number) {
  for (std::size_t at = 0; at + Head::bytes <= rest.size(); at += alignment) {
    const auto head = parse(rest.substr(at));
    if (head && head->number > number && frame_in(rest.substr(at))) return true;
  }
  return false;
}

}  // namespace

std::expected<void, std::string> CommitLog::replay(const std::function<void(const Frame&)>& see) {
  if (files_.is_empty()) return {};
  bool is_first = true;
  for (std::uint32_t file = files_.first(); files_.has(file); ++file) {
    const auto bytes = whole_file(files_.file(file));
    if (!bytes) return std::unexpected(files_.path_of(file) + " cannot be read");
    if (current_ != 0) last_in_[current_] = number_;
    current_ = file;
    end_ = 0;
    room_ = bytes->size();
    const auto from_here = [&] {
      return std::string_view(*bytes).substr(std::min<std::size_t>(end_, bytes->size()));
    };
    while (const auto frame = frame_in(from_here())) {
      if (!is_first && frame->number != number_ + 1) break;
      is_first = false;
      number_ = frame->number;
      see(*frame);
      end_ += parse(from_here())->whole();
    }
    if (has_newer_frame(from_here(), number_)) {
      return std::unexpected(fmt::format("{} is damaged at byte {}", files_.path_of(file), end_));
    }
  }
  if (files_.last() != current_) {
    return std::unexpected(files_.path_of(current_ + 1) + " is missing");
  }
  in_use_ = embedded::PathInUse(files_.path_of(current_));
  return {};
}

/// Uses the oldest file again if no start needs it: it has its length already, so that syncs of its
/// frames have none to make durable.
void CommitLog::begin_file() {
  const std::uint32_t next = current_ + 1;
  if (current_ != 0) last_in_[current_] = number_;
  const auto oldest = last_in_.begin();
  const bool is_free = oldest != last_in_.end() && oldest->second <= reusable_to_;
  if (is_free) {
    const std::uint32_t reused = oldest->first;
    last_in_.erase(oldest);
    files_.rename(reused, next);
    struct stat facts{};
    if (::fstat(files_.file(next), &facts) != 0) files_.fail_closed("looking at a file");
    room_ = static_cast<std::uint64_t>(facts.st_size);
  } else {
    files_.make(next);
    room_ = 0;
  }
  // After a burst there are more than the next ones will need.
  while (last_in_.size() > 2 && std::next(last_in_.begin())->second <= reusable_to_) {
    files_.remove(last_in_.begin()->first);
    last_in_.erase(last_in_.begin());
  }
  current_ = next;
  end_ = 0;
  in_use_ = embedded::PathInUse(files_.path_of(current_));
}

void CommitLog::append(std::string_view versions, std::string_view rest) {
  // A file that a crash left without a frame is there already.
  if (current_ == 0 || end_ >= file_bytes_) begin_file();
  Head head{static_cast<std::uint32_t>(versions.size()), static_cast<std::uint32_t>(rest.size()),
            ++number_, 0};
  head.checksum = checksum_of_frame(head, versions, rest);
  auto bytes = to_bytes(head);
  const int file = files_.file(current_);
  if (end_ + head.whole() > room_) {
    room_ = std::max(end_ + head.whole(), room_ + growth_bytes);
    if (::posix_fallocate(file, 0, static_cast<off_t>(room_)) != 0) {
      files_.fail_closed("making room");
    }
  }
  std::array<iovec, 3> parts{iovec{bytes.data(), bytes.size()},
                             iovec{const_cast<char*>(versions.data()), versions.size()},
                             iovec{const_cast<char*>(rest.data()), rest.size()}};
  std::size_t left = bytes.size() + head.body();
  std::size_t first = 0;
  auto at = static_cast<off_t>(end_);
  while (left > 0) {
    const ssize_t n =
        ::pwritev(file, parts.data() + first, static_cast<int>(parts.size() - first), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) files_.fail_closed("write");
    left -= static_cast<std::size_t>(n);
    at += n;
    for (auto rest_of_it = static_cast<std::size_t>(n); first < parts.size();) {
      const std::size_t taken = std::min(rest_of_it, parts[first].iov_len);
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + taken;
      parts[first].iov_len -= taken;
      rest_of_it -= taken;
      if (parts[first].iov_len > 0) break;
      ++first;
    }
  }
  if (::fdatasync(file) != 0) files_.fail_closed("sync");
  end_ += head.whole();
}

}  // namespace idem::segments
