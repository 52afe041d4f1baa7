#pragma once

#include "core/record/store_clock.hpp"

#include <idem/open_store.hpp>

#include <memory>
#include <optional>
#include <string>

namespace idem {

/// How much memory and disk the parts of the store use; tests make them small.
struct LogSizes {
  std::uint64_t segment_bytes = 64UL << 20U;  ///< Of a file of the log; a commit may go beyond it.
  /// At most: of filters for ids, 11 bits a record, and of the index's blocks. Without its filter a
  /// run of ids is read instead.
  std::size_t cache_bytes = 256UL << 20U;
  std::size_t buffer_bytes = 8UL << 20U;  ///< Of changes that are not in their files.
  std::uint32_t open_files = 384;         ///< Of the index two thirds, the others of versions.
};

struct LogOptions {
  std::optional<HostClock> host{};  ///< For tests; none: this machine's.
  WhichStore which{};
  std::function<void(const OpenedStore&)> opened{};  ///< On the caller's thread.
  /// Skips the check of the settings if the store exists. The caller must not reserve.
  bool as_recorded = false;
  /// A backup becomes a store: what was not settled in it becomes unknown.
  bool restored = false;
  LogSizes sizes{};         ///< Of all shards together.
  Millis mark_each{1'000};  ///< Between two marks of the log's progress, while there is some.
  /// Opens the store although its log ends before the mark of its progress: commits after that
  /// end are lost, and their keys would run again.
  bool accepts_short_log = false;
  /// Makes anew what can be made of the records: lists of what is due and of open records, usage,
  /// counts of files. Without it a start does so with those that it finds damaged, if there are not
  /// too many records.
  bool reindex = false;
  std::function<void(std::uint64_t done, std::uint64_t all)> reindexing{};  ///< With `reindex`.
  /// Called with what was damaged, for people, once it is made anew.
  std::function<void(const std::string& what)> reindexed{};
  /// Called if the last process did not close the store: when a record changed the last time, as
  /// far as that can be read, and when a process closed it the last time, if one did. Whether the
  /// end of the log was lost with its last second, nobody can tell.
  std::function<void(std::optional<StoreTime> newest_record,
                     std::optional<StoreTime> last_clean_stop)>
      cut_off{};
  /// As OpenOptions::shards.
  std::uint32_t shards = 0;
  std::uint32_t shards_of_new = 1;  ///< With `shards` 0.
  /// Called now and then while records are moved to that number of shards, and at the end: how many
  /// were.
  std::function<void(std::uint32_t shards, std::uint64_t moved)> moving{};
};

/// Opens the store in the directory `path`: a log of all commits, and an index in RocksDB. Makes it
/// (mode 0700) if it is not there or is empty. One process at a time.
///
/// Refuses, with a message that names the path, what another process owns, what is no store, what
/// is damaged or of a newer version, other identity settings than at its first start, or another
/// store id than `which` wants. It then changes nothing of the store.
///
/// Once open it fails closed: if a write or its fsync fails, it writes one line to stderr and
/// aborts the process. The next start goes on from what is durable.
std::expected<std::unique_ptr<Store>, StoreError> open_log(const std::string& path,
                                                           const IdentitySettings& settings,
                                                           const LogOptions& options = {});

}  // namespace idem
