#pragma once

#include "store/embedded/path_in_use.hpp"
#include "store/log/files.hpp"
#include "store/log/numbered_files.hpp"
#include "store/log/spare_file.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace idem::segments {

/// Every commit of the store, one frame each, in files of some 64 MiB that are used again. A start
/// repeats what the index and the files of versions had not on the disk. Used by one thread.
class CommitLog {
 public:
  struct Frame {
    std::uint64_t number = 0;  ///< Frames are numbered without a gap.
    std::string_view versions;
    std::string_view rest;
  };

  CommitLog(const std::string& folder, std::uint64_t file_bytes, Background& background);

  std::expected<void, std::string> open();
  /// From now on only programs that know of shards open the store. The error is a sentence.
  std::expected<void, std::string> allow_shards();
  /// To replay() alone, beside the process that appends; changes nothing. What is written meanwhile
  /// may look like damage. look_at_format() comes first: tag() is valid then.
  std::expected<void, std::string> look_at_format();
  std::expected<void, std::string> look() { return files_.look(); }
  /// Shows all frames, from the oldest to the last that was written whole; must come once, before
  /// append(). A frame that a crash cut is the end. An error, a sentence: bytes in the middle are
  /// damaged, or files are missing.
  std::expected<void, std::string> replay(const std::function<void(const Frame&)>& see);

  /// Whether the next frame is the first one of a file; must come before each append().
  bool begins_file();
  std::uint64_t last_number() const noexcept { return number_; }
  /// Valid once it is open.
  const StoreTag& tag() const noexcept { return salt_; }
  /// How many quarters of the present file are full; more than 4 behind a large commit.
  std::uint64_t quarters() const noexcept { return 4 * end_ / file_bytes_; }
  bool is_in_a_file() const noexcept { return end_ > 0; }
  /// It is time for prepare_next(), also if that found nothing before.
  bool wants_next() const {
    return is_in_a_file() && !files_.has(current_ + 1) &&
           (quarters() >= 3 || (grows() && spare_.is_ready()));
  }
  /// Gives a file that no start needs the number behind the present one's, so that the log goes on
  /// there without a wait. If there is none it has one made. There is a frame in the present one.
  void prepare_next();
  /// Durable when it returns.
  void append(std::string_view versions, std::string_view rest);
  /// Of what replay() has shown: "PATH at byte 4096".
  std::string where_it_ends() const;
  /// Empty: a start finds what was appended. Otherwise a sentence.
  std::string what_is_lost() const { return in_use_.what_is_wrong(); }
  /// Of a log without frames: the next one has the number behind this one.
  void go_on_behind(std::uint64_t number) noexcept { number_ = number; }
  /// No start needs the frames up to this number.
  void allow_reuse(std::uint64_t to) noexcept { reusable_to_ = to; }

 private:
  bool grows() const noexcept { return room_ < file_bytes_; }
  bool has_reusable() const noexcept {
    return !last_in_.empty() && last_in_.begin()->second <= reusable_to_;
  }
  std::expected<void, std::string> read_format(bool may_make);
  std::expected<void, std::string> write_format(std::uint32_t format);
  void begin_file();
  bool lay_out(std::uint32_t number);
  void make_name_durable();
  void remove_oldest();
  void make_room(std::uint64_t bytes);
  char* frame_buffer(std::size_t bytes);
  void write_durably(std::string_view frame);

  struct DropBuffer {
    void operator()(char* buffer) const noexcept;
  };

  NumberedFiles files_;
  SpareFile spare_;
  Background& background_;
  embedded::PathInUse in_use_;  ///< The current one.
  std::uint64_t file_bytes_;    ///< A file with so many is full; earlier ones may have others.
  std::map<std::uint32_t, std::uint64_t> last_in_;  ///< The last frame of each file before.
  std::uint32_t current_ = 0;                       ///< 0: there is none yet.
  std::uint64_t end_ = 0;                           ///< Of what was written in the current one.
  std::uint64_t room_ = 0;                          ///< The current one's length.
  std::uint64_t number_ = 0;                        ///< Of the last frame.
  std::uint64_t reusable_to_ = 0;
  bool needs_file_ = false;                      ///< As begins_file() found.
  bool asked_for_spare_ = false;                 ///< Since this file began.
  std::atomic<std::uint32_t> durable_name_ = 0;  ///< The newest that was laid out and synced.
  std::uint32_t format_ = 0;
  StoreTag salt_{};
  std::unique_ptr<char[], DropBuffer> buffer_;
  std::size_t buffer_bytes_ = 0;
  bool has_dsync_ = true;  ///< The file system can write and sync in one call.
};

}  // namespace idem::segments
