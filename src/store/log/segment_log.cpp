#include "store/log/segment_log.hpp"

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
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

namespace idem::segments {
namespace {

/// A file grows by this, so that few syncs have a new length to make durable.
constexpr std::uint64_t growth_bytes = 4UL << 20U;
constexpr int open_files_max = 128;
constexpr std::uint32_t magic = 0x314d4449;  // "IDM1"
constexpr std::size_t alignment = 8;

/// In front of each frame.
struct Head {
  std::uint32_t versions = 0;  ///< Their bytes; the index's follow.
  std::uint32_t index = 0;
  std::uint64_t number = 0;
  std::uint64_t checksum = 0;

  static constexpr std::size_t bytes = 32;
  std::size_t body() const noexcept { return std::size_t{versions} + index; }
  std::size_t whole() const noexcept {
    return (bytes + body() + alignment - 1) / alignment * alignment;
  }
};

std::uint64_t checksum_of_frame(const Head& head, std::string_view versions,
                                std::string_view index) {
  RecordId id;  // What the checksum covers besides the bytes.
  ByteWriter out(reinterpret_cast<char*>(id.bytes.data()));
  out.number(head.number);
  out.number(head.versions);
  out.number(head.index);
  return checksum_of(id, versions, index);
}

std::array<char, Head::bytes> to_bytes(const Head& head) {
  std::array<char, Head::bytes> bytes{};
  ByteWriter out(bytes.data());
  out.number(magic);
  out.number(head.versions);
  out.number(head.index);
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
  head.index = in.number<std::uint32_t>();
  (void)in.number<std::uint32_t>();
  head.number = in.number<std::uint64_t>();
  head.checksum = in.number<std::uint64_t>();
  return head;
}

/// The frame at the beginning of `bytes`, if it is whole.
std::optional<SegmentLog::Frame> frame_in(std::string_view bytes) {
  const auto head = parse(bytes);
  if (!head || bytes.size() < Head::bytes + head->body()) return std::nullopt;
  SegmentLog::Frame frame;
  frame.number = head->number;
  frame.versions = bytes.substr(Head::bytes, head->versions);
  frame.index = bytes.substr(Head::bytes + head->versions, head->index);
  if (checksum_of_frame(*head, frame.versions, frame.index) != head->checksum) return std::nullopt;
  return frame;
}

std::uint64_t place_of(std::uint32_t segment, std::uint64_t offset) {
  return std::uint64_t{segment} << 32U | offset;
}
std::uint64_t offset_of(std::uint64_t place) { return place & 0xffffffffU; }

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

std::expected<std::unique_ptr<SegmentLog>, std::string> SegmentLog::open(
    std::string folder, std::uint64_t segment_bytes) {
  std::unique_ptr<SegmentLog> log(new SegmentLog(std::move(folder), segment_bytes));
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(log->folder_, code)) {
    const std::string name = entry.path().filename().string();
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number, 10);
    if (error != std::errc{} || std::string_view(end) != ".segment" || number == 0) continue;
    log->files_[number] = -1;
  }
  if (code) return std::unexpected("its folder cannot be read: " + code.message());
  return log;
}

SegmentLog::~SegmentLog() {
  for (const auto& [segment, file] : files_) {
    if (file >= 0) ::close(file);
  }
}

std::string SegmentLog::path_of(std::uint32_t segment) const {
  return fmt::format("{}/{:08}.segment", folder_, segment);
}

int SegmentLog::file_of(std::uint32_t segment) {
  const auto found = files_.find(segment);
  if (found == files_.end()) return -1;
  if (found->second >= 0) return found->second;
  if (open_files_ >= open_files_max) {
    // The oldest, as the newest are asked for most.
    const auto oldest =
        std::ranges::find_if(files_, [](const auto& one) { return one.second >= 0; });
    ::close(std::exchange(oldest->second, -1));
    --open_files_;
  }
  found->second = ::open(path_of(segment).c_str(), O_RDWR | O_CLOEXEC);
  if (found->second >= 0) ++open_files_;
  return found->second;
}

std::expected<void, std::string> SegmentLog::replay(std::uint64_t from, std::uint64_t number,
                                                    const std::function<void(const Frame&)>& see) {
  number_ = number == 0 ? 0 : number - 1;
  std::uint32_t segment = from == 0 ? 1 : segment_of(from);
  std::uint64_t offset = offset_of(from);
  if (!files_.empty() && !files_.contains(segment)) {
    return std::unexpected(from == 0 ? "its index is missing, or older than its log"
                                     : path_of(segment) + " is missing");
  }
  for (; files_.contains(segment); ++segment, offset = 0) {
    const int file = file_of(segment);
    const auto bytes = file < 0 ? std::nullopt : whole_file(file);
    if (!bytes) return std::unexpected(path_of(segment) + " cannot be read");
    const auto from_here = [&] {
      return std::string_view(*bytes).substr(std::min<std::size_t>(offset, bytes->size()));
    };
    current_ = segment;
    while (auto frame = frame_in(from_here())) {
      if (frame->number != number_ + 1) break;
      number_ = frame->number;
      frame->at = place_of(segment, offset);
      see(*frame);
      offset += parse(from_here())->whole();
    }
    end_ = offset;
    room_ = bytes->size();
    if (has_newer_frame(from_here(), number_)) {
      return std::unexpected(fmt::format("{} is damaged at byte {}", path_of(segment), offset));
    }
  }
  if (!files_.empty() && files_.rbegin()->first != current_) {
    return std::unexpected(path_of(current_ + 1) + " is missing");
  }
  return {};
}

std::uint64_t SegmentLog::next_frame() const noexcept {
  const bool is_full = current_ == 0 || end_ >= segment_bytes_;
  return is_full ? place_of(current_ + 1, 0) : place_of(current_, end_);
}

std::uint64_t SegmentLog::next() const noexcept { return next_frame() + Head::bytes; }

void SegmentLog::begin_segment() {
  ++current_;
  end_ = 0;
  const std::string path = path_of(current_);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) fail_closed("making a segment");
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || ::fsync(file) != 0 || ::fsync(folder) != 0) fail_closed("making a segment");
  ::close(folder);
  files_[current_] = file;
  ++open_files_;
  room_ = 0;
}

void SegmentLog::append(std::string_view versions, std::string_view index) {
  if (current_ == 0 || end_ >= segment_bytes_) begin_segment();
  Head head{static_cast<std::uint32_t>(versions.size()), static_cast<std::uint32_t>(index.size()),
            ++number_, 0};
  head.checksum = checksum_of_frame(head, versions, index);
  auto bytes = to_bytes(head);
  const int file = file_of(current_);
  if (end_ + head.whole() > room_) {
    room_ = std::max(end_ + head.whole(), room_ + growth_bytes);
    if (::posix_fallocate(file, 0, static_cast<off_t>(room_)) != 0) fail_closed("making room");
  }
  std::array<iovec, 3> parts{iovec{bytes.data(), bytes.size()},
                             iovec{const_cast<char*>(versions.data()), versions.size()},
                             iovec{const_cast<char*>(index.data()), index.size()}};
  std::size_t left = bytes.size() + head.body();
  std::size_t first = 0;
  auto at = static_cast<off_t>(end_);
  while (left > 0) {
    const ssize_t n =
        ::pwritev(file, parts.data() + first, static_cast<int>(parts.size() - first), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_closed("write");
    left -= static_cast<std::size_t>(n);
    at += n;
    for (auto rest = static_cast<std::size_t>(n); first < parts.size() && rest > 0;) {
      const std::size_t taken = std::min(rest, parts[first].iov_len);
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + taken;
      parts[first].iov_len -= taken;
      rest -= taken;
      if (parts[first].iov_len == 0) ++first;
    }
    while (first < parts.size() && parts[first].iov_len == 0) ++first;
  }
  if (::fdatasync(file) != 0) fail_closed("sync");
  end_ += head.whole();
}

bool SegmentLog::read(std::uint64_t place, std::size_t size, std::string& into) {
  const int file = file_of(segment_of(place));
  if (file < 0) return false;
  into.resize(size);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n =
        ::pread(file, into.data() + got, size - got, static_cast<off_t>(offset_of(place) + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

void SegmentLog::drop(std::uint32_t segment) {
  const auto found = files_.find(segment);
  if (found == files_.end() || segment == current_) return;
  if (found->second >= 0) {
    ::close(found->second);
    --open_files_;
  }
  files_.erase(found);
  if (::unlink(path_of(segment).c_str()) != 0) fail_closed("deleting a segment");
}

void SegmentLog::fail_closed(std::string_view doing) const noexcept {
  std::fprintf(stderr, "idem: log store failed path=%s doing=%.*s: %s; stopping\n", folder_.c_str(),
               static_cast<int>(doing.size()), doing.data(), std::strerror(errno));
  std::abort();
}

}  // namespace idem::segments
