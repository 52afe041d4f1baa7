#include "store/log/heal_log.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/record/stored_record_codec.hpp"
#include "store/log/commit_log.hpp"
#include "store/log/compaction.hpp"
#include "store/log/progress_mark.hpp"
#include "store/log/running_section.hpp"
#include "store/record_rows.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace idem::segments {
namespace {

namespace fs = std::filesystem;

/// A frame begins at the beginning of a page and fills whole ones.
constexpr std::size_t frame_page_bytes = 4096;
constexpr std::size_t frame_head_bytes = 32;
constexpr std::size_t frame_number_at = 16;
constexpr std::string_view frame_begins = "IDM1";
constexpr std::string_view log_suffix = ".commits";
/// A change of RocksDB's that changes nothing: its number and the count of its parts.
const std::string no_changes(12, '\0');

struct WholeFrame {
  std::uint64_t number = 0;
  std::uint64_t place = 0;  ///< Of its versions.
  std::size_t at = 0;
  std::size_t bytes = 0;
};

/// What frames show of records.
struct SeenRecords {
  std::optional<StoreTime> newest;
  std::map<RecordId, Record> ran;

  void see(const CommitLog::Frame& frame) {
    std::string_view versions = frame.versions;
    while (const auto version = version_in(versions)) {
      const auto id = to_id(version->id);
      const auto record =
          id ? decode_record(*id, version->record) : std::unexpected(std::string_view());
      if (record) see(record->changed_at);
      versions.remove_prefix(version->bytes.size());
    }
    ByteReader in(frame.rest);
    (void)in.number<std::uint64_t>();
    RunningSection running;
    if (!running.apply(in.framed())) return;
    running.visit([this](const embedded::RunningCells::Found& found) {
      auto record = decode_record(found.id, found.record);
      if (!record) return;
      see(record->changed_at);
      ran.insert_or_assign(found.id, std::move(*record));
    });
  }
  void see(StoreTime moment) { newest = std::max(newest.value_or(moment), moment); }
};

/// Of the frame that begins here, whole or not; 0: none does.
std::uint64_t number_at(std::string_view bytes) {
  if (!bytes.starts_with(frame_begins) || bytes.size() < frame_head_bytes) return 0;
  return ByteReader(bytes.substr(frame_number_at)).number<std::uint64_t>();
}

std::size_t pages_of(std::size_t bytes) {
  return (bytes + frame_page_bytes - 1) / frame_page_bytes * frame_page_bytes;
}

std::string log_file(const std::string& folder, std::uint32_t number) {
  return NumberedFiles(folder, std::string(log_suffix)).path_of(number);
}

bool put_whole(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  return !out.fail();
}

/// Reads and writes frames by the log itself, in a folder of its own beside the copy.
class Workshop {
 public:
  explicit Workshop(const std::string& path) : format_(path + "/commits/format") {
    folder_ = path + "/healing";
    fs::remove_all(folder_, code_);
  }
  ~Workshop() { fs::remove_all(folder_, code_); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  /// Of the log in this folder. None: it does not say.
  static std::optional<StoreTag> tag_of(const std::string& folder) {
    Background background;
    CommitLog log(folder, file_bytes, background);
    return log.look_at_format() ? std::optional(log.tag()) : std::nullopt;
  }

  /// The whole frames from here on, up to the first that is not.
  std::vector<WholeFrame> frames_at(std::string_view bytes, std::size_t at, SeenRecords& seen) {
    std::vector<WholeFrame> frames;
    if (!begin() || !put_whole(log_file(folder_, 1), bytes.substr(at))) return frames;
    Background background;
    CommitLog log(folder_, file_bytes, background);
    if (!log.look_at_format() || !log.look()) return frames;
    // It complains of what follows damage, but has shown what is before it.
    (void)log.replay([&](const CommitLog::Frame& frame) {
      const std::size_t size =
          pages_of(frame_head_bytes + frame.versions.size() + frame.rest.size());
      frames.push_back({frame.number, ByteReader(frame.rest).number<std::uint64_t>(), at, size});
      at += size;
      seen.see(frame);
    });
    return frames;
  }

  /// Frames without a change, with the numbers from `first` on. Empty: they cannot be made.
  std::string empty_frames(std::uint64_t first, std::uint64_t count, std::uint64_t place) {
    if (!begin()) return {};
    {
      Background background;
      CommitLog log(folder_, count * frame_page_bytes + 1, background);
      if (!log.open()) return {};
      log.go_on_behind(first - 1);
      const std::string rest = empty_rest(place);
      for (std::uint64_t i = 0; i < count; ++i) {
        (void)log.begins_file();
        log.append({}, rest);
      }
      background.stop();
    }
    auto bytes = whole_file(log_file(folder_, 1)).value_or(std::string());
    bytes.resize(std::min<std::size_t>(bytes.size(), count * frame_page_bytes));
    return bytes;
  }

 private:
  static constexpr std::uint64_t file_bytes = 64UL << 20U;

  bool begin() {
    fs::remove_all(folder_, code_);
    return fs::create_directory(folder_, code_) &&
           fs::copy_file(format_, folder_ + "/format", code_);
  }

  /// As Database::catch_up() reads it: no running record, no change of the index, no id.
  static std::string empty_rest(std::uint64_t place) {
    std::string rest(sizeof place + framed_bytes({}) + framed_bytes(no_changes) + framed_bytes({}),
                     '\0');
    ByteWriter out(rest.data());
    out.number(place);
    out.framed({});
    out.framed(no_changes);
    out.framed({});
    return rest;
  }

  std::string format_;
  std::string folder_;
  std::error_code code_;
};

class Healing {
 public:
  Healing(const std::string& path, std::uint64_t more)
      : path_(path), more_(more), workshop_(path) {}

  std::expected<HealedLog, std::string> heal() {
    const std::string folder = path_ + "/commits";
    NumberedFiles files(folder, std::string(log_suffix));
    if (auto looked = files.look(); !looked) return std::unexpected(looked.error());
    for (const std::uint32_t number : files.numbers()) {
      const auto bytes = files.whole(number);
      const std::string name = files.path_of(number);
      if (!bytes) return std::unexpected(name + ": cannot be read");
      find_frames(*bytes);
      if (frames_.empty()) continue;
      if (!write(*bytes, name)) return std::unexpected(name + ": cannot be written");
    }
    if (more_ > 0 && !add_more()) {
      return std::unexpected(folder + ": its log has no frame that could be continued");
    }
    const auto tag = Workshop::tag_of(folder);
    if (!tag) return std::unexpected(folder + "/format is missing or damaged");
    if (!begin_mark(*tag)) return std::unexpected(path_ + ": its mark cannot be written");
    if (healed_.lost == 0) healed_.ran.clear();
    return std::move(healed_);
  }

 private:
  /// What was durable beyond the log is lost, too. A mark that says so would refuse the copy.
  bool begin_mark(const StoreTag& tag) {
    ProgressMark mark(path_, Millis(0));
    if (!mark.read(tag)) {
      ++healed_.lost;  // Nobody can tell.
    } else if (mark.value().commit > last_) {
      healed_.lost += mark.value().commit - last_;
    }
    return ProgressMark::make(path_, tag, {});
  }

  /// Those that are newer than all before, wherever they begin: a file that is used again has older
  /// ones, too.
  void find_frames(std::string_view bytes) {
    frames_.clear();
    for (std::size_t at = 0; at + frame_head_bytes <= bytes.size();) {
      if (number_at(bytes.substr(at)) <= last_) {
        at += frame_page_bytes;
        continue;
      }
      SeenRecords seen;
      auto found = workshop_.frames_at(bytes, at, seen);
      if (found.empty() || found.front().number <= last_) {
        at += frame_page_bytes;
        continue;
      }
      if (last_ == 0 || found.front().number == last_ + 1) {
        if (healed_.lost == 0 && seen.newest) {
          healed_.newest = std::max(healed_.newest.value_or(*seen.newest), *seen.newest);
        }
      } else {
        healed_.lost += found.front().number - last_ - 1;
      }
      for (auto& [id, record] : seen.ran) healed_.ran.insert_or_assign(id, std::move(record));
      last_ = found.back().number;
      last_place_ = found.back().place;
      at = found.back().at + found.back().bytes;
      frames_.insert(frames_.end(), found.begin(), found.end());
    }
  }

  bool write(const std::string& bytes, const std::string& name) {
    std::string healed;
    for (const WholeFrame& frame : frames_) {
      if (written_ != 0 && frame.number > written_ + 1) {
        const std::uint64_t lost = frame.number - written_ - 1;
        const std::string empty = workshop_.empty_frames(written_ + 1, lost, frame.place);
        if (empty.size() != lost * frame_page_bytes) return false;
        healed += empty;
      }
      healed.append(bytes, frame.at, frame.bytes);
      written_ = frame.number;
    }
    last_file_ = name;
    last_bytes_ = healed;
    return put_whole(name, healed);
  }

  /// After all versions that there are.
  bool add_more() {
    if (last_file_.empty()) return false;
    NumberedFiles versions(path_ + "/records", ".records");
    if (!versions.look() || versions.is_empty()) return false;
    const std::uint64_t end =
        std::uint64_t{versions.last()} << 32U | versions.size_of(versions.last());
    const std::string empty =
        workshop_.empty_frames(written_ + 1, more_, std::max(end, last_place_));
    return empty.size() == more_ * frame_page_bytes && put_whole(last_file_, last_bytes_ + empty);
  }

  const std::string& path_;
  std::uint64_t more_;
  Workshop workshop_;
  HealedLog healed_;
  std::vector<WholeFrame> frames_;
  std::uint64_t last_ = 0;     ///< The highest number that was found.
  std::uint64_t written_ = 0;  ///< The last that the copy has.
  std::uint64_t last_place_ = 0;
  std::string last_file_;
  std::string last_bytes_;
};

}  // namespace

std::expected<HealedLog, std::string> heal_log(const std::string& path, std::uint64_t more) {
  return Healing(path, more).heal();
}

}  // namespace idem::segments
