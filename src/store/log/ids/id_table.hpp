#pragma once

#include "store/embedded/path_in_use.hpp"
#include "store/log/files.hpp"
#include "store/log/ids/memtable.hpp"
#include "store/log/ids/merge.hpp"
#include "store/log/ids/sorted_run.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace idem::segments {

/// Which version of a record is its present one: a log-structured merge tree (O'Neil et al., 1996).
/// The newest entries are in memory; a thread writes them to sorted runs and merges those. What is
/// in memory alone, a start finds in the log of commits, which keeps it until saved_to() says that
/// it is on the disk.
///
/// Used by one thread, beside its own. A failed write of what was in memory ends the process; a
/// merge that fails leaves what it would have merged.
class IdTable {
 public:
  struct Sizes {
    std::size_t memtable_entries = 1UL << 17U;
    /// For filters and first ids. The filters of runs beyond it stay on the disk, and the runs are
    /// read instead.
    std::size_t cache_bytes = 56UL << 20U;
  };

  IdTable(std::string folder, Sizes sizes);
  ~IdTable();
  IdTable(const IdTable&) = delete;
  IdTable& operator=(const IdTable&) = delete;

  /// Makes the folder if it is not there, and refuses the files of another store. Must come first.
  /// Deletes nothing. The error is a sentence.
  std::expected<void, std::string> open(const StoreTag& tag);

  /// Ends its thread; what is in memory alone stays in the log.
  void stop();
  /// Once a start has found all parts to be sound: deletes files that a crash left, and begins to
  /// write.
  void start();

  /// To read alone, beside the process that writes; changes nothing. What is applied stays in
  /// memory.
  std::expected<void, std::string> look(const StoreTag& tag);

  /// All commits up to this one are in files; 0: there are none.
  std::uint64_t saved_to() const noexcept { return runs_->saved_to; }

  /// An entry that is gone: there is none. An error: a damaged page may have it.
  std::expected<IdEntry, std::string_view> find(const RecordId& id) const;
  /// Of the commit of this number, which grows from call to call; no entry counts before.
  void apply(std::span<const IdEntry> entries, std::uint64_t commit);
  /// How many records there are, by which stale entries are recognised.
  void note_live(std::uint64_t records) noexcept {
    live_.store(records, std::memory_order_relaxed);
  }
  /// What was applied will be in files soon; waits if its thread is far behind.
  void save_later();
  /// Returns when all that was applied is in files, or at once if what_is_lost().
  void save();
  /// Empty: its folder is where it was opened. Otherwise a sentence, and nothing is written.
  std::string what_is_lost() const { return in_use_.what_is_wrong(); }

  /// Makes a folder with all entries of this one in one run, as of the commit that was applied
  /// last. The error is a sentence.
  std::expected<void, std::string> copy_to(const std::string& folder) const;

  struct Slice {
    std::vector<IdEntry> entries;   ///< In order, none that is gone.
    std::optional<RecordId> after;  ///< Where to go on; none: that was all.
    bool has_damage = false;        ///< Entries are missing.
  };
  /// At most so many entries behind `after`, none: from the first one on.
  Slice slice(const std::optional<RecordId>& after, std::size_t most) const;

 private:
  /// Of one moment; the newest first.
  struct Runs {
    Merge::Runs runs;
    std::uint64_t saved_to = 0;
  };
  struct Full {
    std::shared_ptr<const Memtable> table;
    std::uint64_t to = 0;
  };

  std::string path_of(std::uint32_t number) const;
  std::expected<void, std::string> read_manifest();
  void delete_others(const Runs& runs) const;

  // ---- its user's thread ----
  void look_for_runs();
  std::shared_ptr<Memtable> next_memtable();

  // ---- its own thread ----
  void serve(const std::stop_token& stop);
  bool has_work() const;
  void make_spare();
  void write(const Full& full);
  std::optional<MergePlan> next_merge() const;
  void begin_merge(const MergePlan& plan);
  void step_merge();
  void replace(const Merge::Runs& merged, std::shared_ptr<const SortedRun> by);
  bool has_room_for_filter(const SortedRun& run) const;
  std::shared_ptr<const SortedRun> open_run(std::uint32_t number) const;
  std::optional<std::size_t> next_without_filter() const;
  std::expected<void, std::string> load_filter(std::size_t run);
  void install(Runs runs);
  void publish();
  [[nodiscard]] bool write_manifest(const Runs& runs) const;

  std::string folder_;
  embedded::PathInUse in_use_;
  Sizes sizes_;
  bool is_look_ = false;
  bool has_list_ = false;  ///< Of its runs, on the disk.
  StoreTag tag_{};

  std::shared_ptr<Memtable> memtable_;
  std::uint64_t last_commit_ = 0;
  std::deque<Full> full_;  ///< The oldest first.
  std::shared_ptr<const Runs> runs_ = std::make_shared<Runs>();
  std::uint64_t seen_ = 0;  ///< Of installed_.

  Runs present_;  ///< As of its own thread.
  std::uint32_t last_number_ = 0;
  std::vector<std::unique_ptr<Merge>> merges_;  ///< The one that began last is of the newest runs.
  std::vector<std::uint32_t> unmergeable_;
  std::vector<std::uint32_t> without_filter_;  ///< Their filters are damaged.
  /// In memory until their user's thread has gone on with others.
  std::vector<std::weak_ptr<const SortedRun>> replaced_;
  bool may_merge_ = true;

  std::atomic<std::uint64_t> live_;  ///< More than there can be: it is not known yet.
  std::atomic<std::uint64_t> installed_{0};
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable progress_;
  std::deque<Full> to_write_;
  std::shared_ptr<Memtable> spare_;  ///< The next memtable_: it costs a commit 8 ms.
  std::shared_ptr<const Runs> newest_ = runs_;
  std::vector<std::shared_ptr<const void>> unused_;  ///< Freed by its own thread, as that can last.
  std::jthread thread_;
};

}  // namespace idem::segments
