#pragma once

#include "store/log/background.hpp"
#include "store/log/files.hpp"
#include "store/log/log_store.hpp"
#include "store/log/numbered_files.hpp"

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace idem::segments {

/// Of a file in the folder of the versions.
std::string version_path(const std::string& folder, std::uint32_t file);

/// The versions of records, one behind the other, in files of some 64 MiB. A place is the number of
/// a file and an offset in it, so places grow. Nothing waits for them to be on the disk: what is
/// not, a start writes again from the log of commits (commit_log.hpp), which keeps it until
/// synced_to() says that it is.
class VersionFiles {
 public:
  VersionFiles(std::string folder, const LogSizes& sizes, Background& background);

  std::expected<void, std::string> open() { return files_.open(); }
  /// To read alone, beside the process that writes; changes nothing.
  std::expected<void, std::string> look(Holding holding);
  /// Of a start: where the next versions go; behind all that are there.
  void go_on_at(std::uint64_t place);

  /// The place of the first one that is written next.
  std::uint64_t next() const noexcept;
  /// At next(), for the commit of this number.
  void append(std::string_view versions, std::uint64_t commit);
  /// Of a start: what the log has for this place. Skips a file that was deleted since, and makes
  /// the one that is to be the last. A look keeps in memory what the file has not. False: the file
  /// is missing, and had more than the log has.
  [[nodiscard]] bool write_again(std::uint64_t place, std::string_view versions);

  /// False: the file has no such bytes, or is gone.
  bool read(std::uint64_t place, std::size_t size, std::string& into);
  /// Why the file of a place cannot be opened, if that is no damage: a sentence that begins with
  /// `store`.
  std::optional<std::string> why_not_opened(const std::string& store, std::uint64_t place);

  static std::uint32_t file_of(std::uint64_t place) noexcept {
    return static_cast<std::uint32_t>(place >> 32U);
  }
  std::uint32_t current() const noexcept { return current_; }
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  std::vector<std::uint32_t> files() const;
  /// Of one before the current one; 0: there is no such file.
  std::uint64_t size_of(std::uint32_t file) const;
  /// A file has more than go_on_at() says, or there is a later one.
  bool goes_beyond_its_end() const;
  /// Where the versions in a file end, as a look sees it.
  std::uint64_t end_of(std::uint32_t file) const;
  /// Its blocks are free a little later.
  void drop(std::uint32_t file);

  /// Begins to bring all that was appended to the disk, in the background.
  void sync_later();
  /// The versions of all commits up to this number are on the disk.
  std::uint64_t synced_to() const noexcept { return synced_to_.load(std::memory_order_acquire); }

 private:
  bool read_beside(std::uint64_t place, std::size_t size, std::string& into);
  void write(std::uint32_t file, std::uint64_t offset, std::string_view bytes);
  OwnFile duplicate(int file) const;
  void write_gathered();
  void start_writing();

  NumberedFiles files_;
  std::uint64_t file_bytes_;
  std::uint32_t current_ = 0;  ///< 0: there is none yet.
  std::uint64_t end_ = 0;
  std::uint64_t last_commit_ = 0;
  std::string gathered_;                   ///< The last ones of current_, not in the file yet.
  std::uint64_t started_to_ = 0;           ///< Up to here current_ is being written to the disk.
  std::atomic<bool> is_starting_ = false;  ///< A job for that waits or runs.
  std::map<std::uint64_t, std::string> beside_;  ///< Of a look, by place.
  bool is_look_ = false;
  std::vector<std::uint32_t> unsynced_;  ///< Files with bytes that may not be on the disk.

  Background& background_;
  std::atomic<std::uint64_t> synced_to_{0};
};

}  // namespace idem::segments
