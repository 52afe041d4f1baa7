#pragma once

#include "store/log/commit_log.hpp"
#include "store/log/family.hpp"
#include "store/log/ids/id_table.hpp"
#include "store/log/index_cursor.hpp"
#include "store/log/log_store.hpp"
#include "store/log/making.hpp"
#include "store/log/progress_mark.hpp"
#include "store/log/running_section.hpp"
#include "store/log/torn_manifest.hpp"
#include "store/log/version_files.hpp"

#include <idem/store.hpp>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
class WriteBatchWithIndex;
struct DBOptions;
}  // namespace rocksdb

namespace idem::segments {

/// In `meta` of a backup: a StoreTime.
inline constexpr std::string_view meta_copied_at = "copied_at";

struct DatabaseSettings {
  std::string path;
  LogSizes sizes{};
  bool is_alone = false;    ///< Of a look: no process has the store open.
  Millis mark_each{1'000};  ///< As LogOptions', likewise the next one.
  bool accepts_short_log = false;
  bool is_start = false;     ///< Of a look: a start follows, and nobody else has the store.
  bool is_recovery = false;  ///< Of a look: it has what is left of the records and of the index.
};

/// What a start or a look knows of the end of what it found.
struct FoundEnd {
  std::optional<StoreTime> newest_record{};  ///< Its last change, as far as it is known.
  std::optional<StoreTime> stopped_at{};     ///< When a process closed the store the last time.

  /// The latest of several shards.
  void join(const FoundEnd& other) {
    newest_record = std::max(newest_record, other.newest_record);
    stopped_at = std::max(stopped_at, other.stopped_at);
  }
};

/// Why the disk lacks the room that a start needs, also to end the attempts of a killed process.
/// None: it has room.
std::optional<std::string> why_no_room_to_start(const std::string& path, const LogSizes& sizes,
                                                const RunningSection& running);

class IndexWatch;

/// The log of commits, the files of versions, the table of ids, and an index of the rest in
/// RocksDB. A transaction is durable once its frame is in the log; the others get it without a
/// sync, and a start repeats what they had not on the disk. Used by one thread. A failed write ends
/// the process, as sqlite's: nobody knows what the next start will find.
class Database {
 public:
  /// Makes it if there is none. Fills `running`, which every commit writes into its frame from then
  /// on.
  static std::expected<std::unique_ptr<Database>, StoreError> open(const DatabaseSettings& how,
                                                                   RunningSection& running);
  /// To read alone, beside a process that has it open or not: as of one of its last commits.
  /// Changes nothing. What that process changes meanwhile may look like damage; see
  /// look_at_store().
  static std::expected<std::unique_ptr<Database>, StoreError> look(const DatabaseSettings& how,
                                                                   RunningSection& running);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // ---- written at the commit; reads do not see it before ----
  void append(Family family, std::string_view key, std::string_view value);
  void remove(Family family, std::string_view key);
  void set(const IdEntry& entry) { id_changes_.push_back(entry); }

  // ---- seen by find() and iterate() at once ----
  void put(Family family, std::string_view key, std::string_view value);
  void erase(Family family, std::string_view key);

  /// False: there is none. An error: it cannot be read, because the medium damaged it.
  std::expected<bool, std::string> get(Family family, std::string_view key, std::string& value);
  /// With what this transaction put.
  std::expected<bool, std::string> find(Family family, std::string_view key, std::string& value);
  /// With what this transaction put. A failure while it moves: call check().
  IndexCursor iterate(Family family);
  /// False: the cursor of this family has met what cannot be read, and what comes next is unknown.
  /// The step under way fails then, with take_damage().
  bool check(const IndexCursor& at, Family family);
  /// Likewise, where the caller says itself what that means.
  bool is_sound(const IndexCursor& at, Family family);
  /// A value of this family does not have its checksum, say: the step under way fails.
  void fail_step(Family family, std::string why);
  /// A read of the step under way has failed, so that it must not write what depends on it.
  bool has_failed_step() const noexcept { return failed_step_.has_value(); }
  /// Why the step that ends now failed, if it did. Its family is noted for the next start.
  std::optional<StoreError> take_damage();

  // ---- repair_index() alone ----
  /// What a process has found damaged. The error is a sentence.
  std::expected<Families, std::string> noted_damage();
  /// Writes and commits it.
  void note_damage(const Families& families);
  /// Makes them anew, empty; their files are not read. The error is a sentence.
  std::expected<void, std::string> renew(const Families& families);

  IdTable& ids() noexcept { return ids_; }
  /// Of a recovery: it could not read them, and ids() has those of the log alone.
  bool lacks_ids() const noexcept { return lacks_ids_; }
  /// As CommitLog's.
  std::expected<void, std::string> allow_shards() { return log_.allow_shards(); }

  /// Of a look: derived families of whose files one is gone or cannot be opened.
  const Families& unopened() const noexcept { return unopened_; }

  /// The versions that this transaction writes: appended here, the first at the place next().
  std::string& versions() noexcept { return versions_; }
  std::uint64_t next() const noexcept { return records_.next(); }
  /// One of an earlier transaction. False: it is gone.
  bool read_version(std::uint64_t place, std::size_t size, std::string& into) {
    return records_.read(place, size, into);
  }
  /// After that: what keeps this process from the file, if it is no damage.
  std::optional<std::string> why_not_opened(std::uint64_t place);
  std::uint32_t current_file() const noexcept { return records_.current(); }
  /// 0: there is no such file.
  std::uint64_t size_of_file(std::uint32_t file) const { return records_.size_of(file); }
  std::vector<std::uint32_t> files_of_versions() const { return records_.files(); }
  /// Where the versions in a file end, as a look sees it.
  std::uint64_t end_of_file(std::uint32_t file) const { return records_.end_of(file); }
  std::uint64_t file_bytes() const noexcept { return records_.file_bytes(); }
  void drop_file(std::uint32_t file) { records_.drop(file); }

  bool has_written() const noexcept;
  /// Writes all of it as one, durable when this returns.
  void commit();

  /// Empty: the log is where it was opened. Otherwise a sentence. Then index and files get all that
  /// was committed, so that a start without the log knows that something is missing.
  std::string what_is_lost();

  // ---- of a look: parts of a copy of it in the directory `path`; see copy_store() ----
  /// Makes the log, with one frame: the last one.
  std::expected<void, std::string> copy_log_to(const std::string& path);
  /// Of that log; after it.
  std::expected<void, std::string> copy_mark_to(const std::string& path) const;
  /// With `copied_at`, if any, as a value of `meta`.
  std::expected<void, std::string> copy_index_to(const std::string& path,
                                                 std::optional<StoreTime> copied_at);

  const FoundEnd& found_end() const noexcept { return found_end_; }
  /// All is committed, and the store is closed with it. Must come last.
  void note_clean_stop() { mark_.stop_clean(); }

  const std::string& path() const noexcept { return path_; }

  [[noreturn]] void fail_closed(std::string_view why, std::string_view doing) const noexcept;

 private:
  static constexpr std::uint64_t save_parts = 3;  ///< See save_part().

  Database(const DatabaseSettings& how, RunningSection& running);
  /// Null in a look, if the list of files does not name the family: it reads as empty.
  ::rocksdb::ColumnFamilyHandle* handle(Family family) const noexcept {
    return handles_[static_cast<std::size_t>(family)];
  }

  [[noreturn]] void fail_closed(const ::rocksdb::Status& status,
                                std::string_view doing) const noexcept;
  enum class Strict : bool { no, yes };
  ::rocksdb::Status open_index(Strict strict);
  ::rocksdb::Status open_to_read(const ::rocksdb::DBOptions& options, const std::string& index);
  void close_index();
  static std::expected<void, StoreError> make_ready(const DatabaseSettings& how);
  std::expected<void, StoreError> open_rest(const DatabaseSettings& how, bool is_new);
  static std::expected<void, StoreError> renew_unopened(const DatabaseSettings& how,
                                                        const Families& unopened);
  std::expected<bool, StoreError> judge_files();
  void look_after_compactions();
  std::expected<void, std::string> catch_up();
  void note(Family family);
  void write_noted();
  std::string why_too_short(std::uint64_t indexed) const;
  [[nodiscard]] bool write_to_index(std::string_view changes);
  void begin_file_of_log();
  void note_what_is_saved();
  void save_part();
  void flush_index();
  void save_all();
  void build_frame(std::string_view changes, bool is_whole);
  void append_framed(std::string_view bytes);

  std::optional<Making> making_;       ///< First, as it keeps other processes out to the end.
  std::optional<MendedIndex> mended_;  ///< Of a look.
  std::string path_;
  embedded::PathInUse index_;
  bool is_look_ = false;
  bool is_alone_ = true;
  bool opens_all_ = true;  ///< A look opens all files of the index at once and keeps them open.
  bool has_saved_all_ = false;
  bool lacks_ids_ = false;
  bool accepts_short_log_;
  bool is_recovery_;
  LogSizes sizes_;
  Families noted_;     ///< What is damaged, as the next start is to find it.
  Families unopened_;  ///< Of an index that was not opened strictly.
  std::optional<StoreError> failed_step_;
  std::uint64_t saved_parts_ = save_parts;  ///< Since the present file of the log began.
  RunningSection* running_ = nullptr;
  FoundEnd found_end_;
  ProgressMark mark_;
  Background background_;
  CommitLog log_;
  VersionFiles records_;
  IdTable ids_;
  std::string frame_;
  std::string versions_;
  std::vector<IdEntry> id_changes_;
  std::string ids_bytes_;
  std::shared_ptr<IndexWatch> watch_;
  std::unique_ptr<::rocksdb::DB> db_;
  std::vector<::rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<::rocksdb::WriteBatch> batch_;
  std::unique_ptr<::rocksdb::WriteBatchWithIndex> seen_;
};

}  // namespace idem::segments
