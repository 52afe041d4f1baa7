#include "store/sqlite/judge_log.hpp"

#include "store/file_access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

namespace idem::sqlite {
namespace {

using LogKind = LogJudgement::Kind;

constexpr std::uint64_t log_header_bytes = 32;
constexpr std::uint64_t frame_header_bytes = 24;
/// Of a frame's header the number of the page and the commit mark, which its checksum covers. The
/// mark is the size of the database in pages, or 0: the commit goes on.
constexpr std::uint64_t summed_header_bytes = 8;
constexpr std::uint64_t salts_end = 16;
constexpr std::uint32_t log_magic = 0x377f0682;  ///< Or 1 more: checksums of big-endian words.
constexpr std::uint32_t log_version = 3'007'000;
constexpr std::uint32_t usual_page_bytes = 4'096;
/// A disk writes so many bytes whole or not at all.
constexpr std::uint64_t sector_bytes = 512;
/// A lost mark is looked for among so many sizes of the database: some milliseconds.
constexpr std::uint32_t sizes_tried_max = 4'096;
/// Each finds the writer further on, or the same bad frame.
constexpr int readings_max = 8;

std::uint32_t big_endian_at(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24U | std::uint32_t{at[1]} << 16U | std::uint32_t{at[2]} << 8U |
         at[3];
}

struct LogSum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  bool operator==(const LogSum&) const = default;
};

LogSum sum_at(const unsigned char* at) { return {big_endian_at(at), big_endian_at(at + 4)}; }

/// The checksum of section 4.2, continued over a multiple of eight bytes.
LogSum continued(LogSum sum, const unsigned char* bytes, std::size_t size, bool is_swapped) {
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint32_t words[2];
    std::memcpy(words, bytes + at, sizeof words);
    if (is_swapped) {
      words[0] = __builtin_bswap32(words[0]);
      words[1] = __builtin_bswap32(words[1]);
    }
    sum.first += words[0] + sum.second;
    sum.second += words[1] + sum.first;
  }
  return sum;
}

bool is_page_size(std::uint32_t bytes) {
  return bytes >= 512 && bytes <= 65'536 && std::has_single_bit(bytes);
}

/// Whether the mark came to the disk together with the salts, which tell the generation.
bool has_mark_and_salts_in_one_sector(std::uint64_t frame_at) {
  return frame_at / sector_bytes == (frame_at + salts_end - 1) / sector_bytes;
}

/// SQLite has no lock of a log, so that closing the file ends none.
class LogOnDisk {
 public:
  explicit LogOnDisk(const std::string& path, int flags = O_RDONLY)
      : file_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~LogOnDisk() {
    if (file_ >= 0) ::close(file_);
  }
  LogOnDisk(const LogOnDisk&) = delete;
  LogOnDisk& operator=(const LogOnDisk&) = delete;

  int descriptor() const { return file_; }
  /// How many bytes of these there are. None: see errno.
  std::optional<std::size_t> read(std::uint64_t at, unsigned char* out, std::size_t size) const {
    std::size_t done = 0;
    while (done < size) {
      const ssize_t some = ::pread(file_, out + done, size - done, static_cast<off_t>(at + done));
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) return std::nullopt;
      if (some == 0) break;
      done += static_cast<std::size_t>(some);
    }
    return done;
  }

 private:
  int file_;
};

/// Goes through all frames once, past bad ones. A frame is linked if its checksum follows from that
/// of the frame before: 64 bits say that the two were written in turn.
class LogReading {
 public:
  LogReading(const LogOnDisk& file, LogJudgement& judged, const SeePage& see)
      : file_(file), judged_(judged), see_(see) {}

  /// False: see errno.
  bool read() {
    std::array<unsigned char, log_header_bytes> header{};
    const auto size = file_.read(0, header.data(), header.size());
    if (!size) return false;
    if (*size < header.size()) return true;
    read_header(header.data());
    for (std::uint64_t at = log_header_bytes;; at += frame_.size()) {
      const auto some = file_.read(at, frame_.data(), frame_.size());
      if (!some) return false;
      if (*some < frame_.size()) {
        has_more_ = has_more_ || (*some >= salts_end && has_salts());
        break;
      }
      take(at);
    }
    conclude();
    return true;
  }

 private:
  void read_header(const unsigned char* header) {
    const std::uint32_t magic = big_endian_at(header);
    const std::uint32_t page_bytes = big_endian_at(header + 8);
    is_swapped_ = ((magic & 1U) == 1) == (std::endian::native == std::endian::little);
    std::memcpy(salts_.data(), header + 16, salts_.size());
    stored_ = sum_at(header + 24);
    computed_ = continued({}, header, 24, is_swapped_);
    is_header_good_ = (magic & ~1U) == log_magic && big_endian_at(header + 4) == log_version &&
                      is_page_size(page_bytes) && stored_ == computed_;
    page_bytes_ = is_page_size(page_bytes) ? page_bytes : usual_page_bytes;
    frame_.resize(frame_header_bytes + page_bytes_);
    judged_.end = log_header_bytes;
    has_bad_ = !is_header_good_;
  }

  bool has_salts() const {
    return is_header_good_ &&
           std::memcmp(frame_.data() + summed_header_bytes, salts_.data(), salts_.size()) == 0;
  }
  LogSum sum_from(LogSum before) const {
    const LogSum head = continued(before, frame_.data(), summed_header_bytes, is_swapped_);
    return continued(head, frame_.data() + frame_header_bytes, page_bytes_, is_swapped_);
  }

  void take(std::uint64_t at) {
    const std::uint32_t mark = big_endian_at(frame_.data() + 4);
    const LogSum stored = sum_at(frame_.data() + salts_end);
    const LogSum computed = sum_from(stored_);
    const bool has_page = big_endian_at(frame_.data()) != 0;
    const bool follows = has_page && computed == stored;
    // The checksum of the frame before may be all that is bad of that.
    const bool proves_last = has_page && !follows && sum_from(computed_) == stored;
    const bool is_linked = follows || proves_last;
    if (proves_last && has_doubtful_mark_) ++judged_.dropped;
    // Frames of an earlier generation follow one another, but none of this one.
    const bool is_ours = has_salts() || (is_linked && was_ours_);
    if (!has_bad_ && is_linked && has_salts()) {
      take_good(at, mark);
    } else if (!has_bad_) {
      has_bad_ = true;
      judged_.bad_at = at;
      if (is_ours && mark == 0) unmarked_ = {frame_, stored_};
      take_after_bad(at, mark, is_linked, is_ours);
    } else {
      if (at == judged_.bad_at + frame_.size()) is_next_linked_ = is_linked;
      take_after_bad(at, mark, is_linked, is_ours);
    }
    if (is_linked && is_ours && see_) show(mark);
    has_doubtful_mark_ = has_bad_ && is_ours && mark != 0 && !is_mark_certain(at, is_linked);
    stored_ = stored;
    computed_ = computed;
    // After a damaged header nothing shows to which generation the first frame belongs.
    was_ours_ = is_ours || (!is_header_good_ && at == log_header_bytes);
  }

  void show(std::uint32_t mark) const {
    const auto* const page = reinterpret_cast<const char*>(frame_.data() + frame_header_bytes);
    see_(big_endian_at(frame_.data()), {page, page_bytes_}, mark);
  }

  static bool is_mark_certain(std::uint64_t at, bool is_linked) {
    return is_linked || has_mark_and_salts_in_one_sector(at);
  }

  void take_good(std::uint64_t at, std::uint32_t mark) {
    is_unfinished_ = mark == 0;
    has_first_page_ = has_first_page_ || big_endian_at(frame_.data()) == 1;
    if (mark == 0) return;
    judged_.has_first_page = has_first_page_;
    judged_.end = at + frame_.size();
    ++judged_.commits;
    size_before_ = mark;
  }

  /// Counts marks that are as they were written. A power cut leaves at most one: each commit is
  /// synced before the next one begins.
  void take_after_bad(std::uint64_t at, std::uint32_t mark, bool is_linked, bool is_ours) {
    if (!is_header_good_) {
      has_more_ =
          has_more_ || std::ranges::any_of(frame_, [](unsigned char byte) { return byte != 0; });
    }
    if (!is_ours) return;
    has_more_ = true;
    if (mark == 0 || !is_mark_certain(at, is_linked)) return;
    ++judged_.dropped;
    size_after_ = mark;
  }

  /// Whether the first bad frame ended a commit, and lost its mark: one of the sizes that the
  /// database can have had makes its checksum true.
  bool has_lost_its_mark() {
    if (unmarked_.bytes.empty() || !is_next_linked_) return false;
    frame_ = unmarked_.bytes;
    const LogSum stored = sum_at(frame_.data() + salts_end);
    const auto [least, most] = std::minmax(size_before_, size_after_);
    const std::uint32_t first = most > sizes_tried_max ? most - sizes_tried_max : 1;
    for (std::uint32_t size = std::max(first, least); size <= most; ++size) {
      for (std::uint32_t i = 0; i < 4; ++i) {
        frame_[4 + i] = static_cast<unsigned char>(size >> (24 - 8 * i));
      }
      if (size != 0 && sum_from(unmarked_.before) == stored) return true;
    }
    return false;
  }

  void conclude() {
    if (!is_header_good_) {
      // The header is durable before the first frame is written.
      judged_.kind = has_more_ ? LogKind::damaged : LogKind::missing;
      judged_.end = 0;
      return;
    }
    if (judged_.dropped == 1 && has_lost_its_mark()) ++judged_.dropped;
    if (judged_.dropped > 1) {
      judged_.kind = LogKind::damaged;
    } else {
      judged_.kind = is_unfinished_ || has_more_ ? LogKind::torn : LogKind::whole;
    }
  }

  struct Unmarked {
    std::vector<unsigned char> bytes;  ///< Empty: there is none.
    LogSum before;
  };

  const LogOnDisk& file_;
  LogJudgement& judged_;
  const SeePage& see_;
  std::array<unsigned char, 8> salts_{};
  std::vector<unsigned char> frame_;
  std::uint64_t page_bytes_ = 0;
  bool is_swapped_ = false;
  bool is_header_good_ = false;
  LogSum stored_;    ///< Of the header or the frame before, as it is in the file.
  LogSum computed_;  ///< As it should be, if the one before that is right.
  bool was_ours_ = true;
  bool has_doubtful_mark_ = false;  ///< The frame before, one that was not counted.
  bool has_bad_ = false;
  bool has_first_page_ = false;  ///< In some frame, perhaps of a commit that is not whole.
  bool is_unfinished_ = false;   ///< Good frames have no mark after them.
  bool has_more_ = false;        ///< There are frames of this generation that SQLite does not take.
  std::uint32_t size_before_ = 0;
  std::uint32_t size_after_ = 0;
  Unmarked unmarked_;  ///< The first bad frame, if it has no mark.
  bool is_next_linked_ = false;
};

std::string log_failure(const std::string& log, const char* doing) {
  const int error = errno;
  const std::string database = log.substr(0, log.rfind("-wal"));
  return log + ": " + doing + ": " + words_on(error, log, database);
}

}  // namespace

std::expected<LogJudgement, std::string> judge_log(const std::string& log) {
  return read_log(log, {});
}

std::expected<LogJudgement, std::string> read_log(const std::string& log, const SeePage& see) {
  LogJudgement judged;
  const LogOnDisk file(log);
  if (file.descriptor() < 0) {
    if (errno == ENOENT) return judged;
    return std::unexpected(log_failure(log, "cannot be read"));
  }
  struct stat state{};
  if (::fstat(file.descriptor(), &state) != 0 || !LogReading(file, judged, see).read()) {
    return std::unexpected(log_failure(log, "cannot be read"));
  }
  judged.bytes = static_cast<std::uint64_t>(state.st_size);
  // A start that is refused may leave an empty one, and its time says nothing.
  if (judged.kind == LogJudgement::Kind::missing) return judged;
  judged.written_at =
      StoreTime(Millis(state.st_mtim.tv_sec * 1'000 + state.st_mtim.tv_nsec / 1'000'000));
  return judged;
}

std::expected<LogJudgement, std::string> judge_written_log(const std::string& log) {
  auto judged = judge_log(log);
  for (int i = 0; i < readings_max && judged && judged->kind == LogKind::damaged; ++i) {
    // What followed the bad frame was there, so the frame had been written by then.
    const std::uint64_t bad_at = judged->bad_at;
    judged = judge_log(log);
    if (judged && judged->kind == LogKind::damaged && judged->bad_at == bad_at) return judged;
  }
  if (judged && judged->kind == LogKind::damaged) judged->kind = LogKind::torn;
  return judged;
}

std::expected<void, std::string> settle_log(const std::string& log, const LogJudgement& judged) {
  if (judged.bytes == 0) return {};
  const LogOnDisk file(log, O_RDWR);
  if (file.descriptor() < 0) return std::unexpected(log_failure(log, "cannot be written"));
  const bool is_cut = judged.kind != LogKind::torn ||
                      ::ftruncate(file.descriptor(), static_cast<off_t>(judged.end)) == 0;
  if (!is_cut || ::fsync(file.descriptor()) != 0) {
    return std::unexpected(log_failure(log, "cannot be made durable"));
  }
  return {};
}

}  // namespace idem::sqlite
