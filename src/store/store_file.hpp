#pragma once

#include <idem/store.hpp>

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace idem {

/// One thing that is wrong in a store's file.
struct StoreFinding {
  std::string where;  ///< "record 9f86...", "journal audit, line 7", "page structure".
  std::string what;
  std::string todo;
};

/// What is in a store's file.
struct StoreFileReport {
  std::string store_id;
  std::array<std::uint64_t, 7> by_state{};  ///< Records that can be read, indexed by State.
  std::uint64_t evidence = 0;
  std::uint64_t journal_lines = 0;
  std::uint64_t bytes = 0;  ///< Of the database, with what is in its log only.
  /// Of a look: why a start with the settings would refuse it, a sentence without its path.
  std::string contradiction;
  std::optional<StoreTime> copied_at;        ///< Of a backup: all that was durable then is in it.
  std::optional<StoreTime> newest_record;    ///< Its last change, as far as it is known.
  std::optional<StoreTime> last_clean_stop;  ///< None: no process has closed it.
  bool is_move_cut_off = false;  ///< A start that moved records to other shards ended before.
  /// What may be lost though a crash can have left the store as it is: sentences without its path.
  std::vector<std::string> doubts;
  std::uint64_t found = 0;
  std::vector<StoreFinding> findings;  ///< The first limits of them; `found` counts all.
};

struct StoreFileError {
  enum class Kind : std::uint8_t {
    not_found,
    empty,    ///< There is no store yet, and a start makes one there.
    refused,  ///< By the state of a file or of its owner; nothing was changed.
    failed,   ///< The disk, or a right.
  };
  Kind kind = Kind::failed;
  std::string why;  ///< A sentence that names the file and says what to do.
};

/// Called now and then with the part that is done.
using StoreFileProgress = std::function<void(std::uint64_t done, std::uint64_t all)>;

struct RestoreOrder {
  std::string from;  ///< A backup, or the file of a store that nobody has open.
  std::string path;
  bool keep_old = false;       ///< Moves a store at `path` to another name. False: it is refused.
  bool accept_damage = false;  ///< Restores although the check found something.
  StoreFileProgress progress{};
};

struct Restored {
  StoreFileReport from;  ///< As it was in the backup.
  std::uint64_t unknown = 0;
  std::string old_store;  ///< The name of the one that was at the path; empty: there was none.
};

struct RecoverOrder {
  std::string from;  ///< A store that nobody has open, perhaps damaged. It stays as it is.
  std::string to;    ///< The new one.
  StoreFileProgress progress{};
};

struct Recovered {
  StoreFileReport made;                 ///< The new store, read and checked.
  bool lacks_keys = false;              ///< Keys of the time between these moments may be missing.
  std::optional<StoreTime> lacks_from;  ///< None: of any time.
  std::vector<std::string> notes;       ///< What else could not be read, sentences.
};
enum class LookDepth : std::uint8_t { identity, whole };

/// Work on the file of a store that is one file. Paths are absolute.
struct StoreFileKind {
  /// Reads all of it, beside a process that has it open or not, and changes nothing.
  std::expected<StoreFileReport, StoreFileError> (*check)(const std::string& path,
                                                          const StoreFileProgress& progress);
  /// Reads likewise what it is: id, bytes, and what it contradicts in `settings`. As `whole` it
  /// reads as much as a start, and refuses the damage that a start refuses, unless a process has it
  /// open; else less. Must not be called in that process.
  std::expected<StoreFileReport, StoreFileError> (*look)(const std::string& path,
                                                         const IdentitySettings& settings,
                                                         LookDepth depth);
  /// Copies it likewise to `to`, which must not exist: the copy is durable and checked before it
  /// has that name. A process that ends in between leaves a file of another name.
  std::expected<StoreFileReport, StoreFileError> (*backup)(const std::string& path,
                                                           const std::string& to,
                                                           const StoreFileProgress& progress);
  /// Makes a store of a backup. What was not settled in the backup becomes unknown, because it may
  /// have run since (docs/operations.md). Wherever it ends, the path has the old store, the new
  /// one, or a link to nothing that no start takes for a store.
  std::expected<Restored, StoreFileError> (*restore)(const RestoreOrder& order);
  /// Makes a store of what can be read of another one. A completed record whose checksums hold
  /// keeps its answer; all others become unknown, as after a restore. The new store has its name
  /// once it is whole, durable and checked.
  std::expected<Recovered, StoreFileError> (*recover)(const RecoverOrder& order);
  /// Makes anew what can be made of the records, without another process that has it open; begins
  /// and ends as a start does. Returns how many records there are. Null: it has nothing of the
  /// kind.
  std::expected<std::uint64_t, StoreFileError> (*reindex)(
      const std::string& path, const StoreFileProgress& progress) = nullptr;
};

}  // namespace idem
