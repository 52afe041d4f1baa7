#include "store/log/index_options.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <mutex>
#include <utility>

namespace idem::segments {
namespace {

using ::rocksdb::ColumnFamilyDescriptor;
using ::rocksdb::ColumnFamilyOptions;

constexpr std::size_t mebibyte = 1UL << 20U;

::rocksdb::BlockBasedTableOptions blocks(const std::shared_ptr<::rocksdb::Cache>& cache) {
  ::rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.index_type = ::rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.format_version = 5;
  table.block_size = 8UL * 1024;
  return table;
}

/// A look writes nothing, also no log of RocksDB's.
class NoLog final : public ::rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

/// Of the family of this number.
ColumnFamilyOptions family_options(Family family, const LogSizes& sizes,
                                   const std::shared_ptr<::rocksdb::Cache>& cache) {
  ColumnFamilyOptions options;
  ::rocksdb::BlockBasedTableOptions table = blocks(cache);
  // All families are flushed once one of these is full.
  options.write_buffer_size = sizes.buffer_bytes;
  // A commit never waits for the disk twice: full buffers queue before it would.
  options.max_write_buffer_number = 4;
  options.arena_block_size = 64UL * 1024;
  options.compression = ::rocksdb::kLZ4Compression;
  switch (family) {
    case Family::requests:
      table.filter_policy.reset(::rocksdb::NewRibbonFilterPolicy(10));
      break;
    case Family::segments:
    case Family::meta:
      // The same few keys, again and again.
      options.inplace_update_support = true;
      break;
    case Family::due:
      // By level, each flush would stay a file of its own: lists come in order.
      options.compaction_style = ::rocksdb::kCompactionStyleUniversal;
      break;
    case Family::work:
    case Family::evidence:
    case Family::journals:
    case Family::usage:
      break;
  }
  options.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

/// Repeats each change of a batch in another.
class Copy final : public ::rocksdb::WriteBatch::Handler {
 public:
  Copy(::rocksdb::WriteBatchBase& to, const std::vector<::rocksdb::ColumnFamilyHandle*>& handles)
      : to_(to), handles_(handles) {}
  ::rocksdb::Status PutCF(std::uint32_t family, const ::rocksdb::Slice& key,
                          const ::rocksdb::Slice& value) override {
    auto* const to = handle(family);
    return to == nullptr ? gone() : to_.Put(to, key, value);
  }
  ::rocksdb::Status DeleteCF(std::uint32_t family, const ::rocksdb::Slice& key) override {
    auto* const to = handle(family);
    return to == nullptr ? gone() : to_.Delete(to, key);
  }

 private:
  static ::rocksdb::Status gone() {
    return ::rocksdb::Status::InvalidArgument("a family that was made anew since");
  }
  ::rocksdb::ColumnFamilyHandle* handle(std::uint32_t id) const {
    for (auto* const one : handles_) {
      if (one != nullptr && one->GetID() == id) return one;
    }
    return nullptr;
  }
  ::rocksdb::WriteBatchBase& to_;
  const std::vector<::rocksdb::ColumnFamilyHandle*>& handles_;
};

}  // namespace

::rocksdb::DBOptions index_options(const LogSizes& sizes) {
  ::rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // All families are of one moment, the one at which a start goes on in the log.
  options.atomic_flush = true;
  options.allow_concurrent_memtable_write = false;
  options.max_background_jobs = 2;
  options.max_open_files = static_cast<int>(sizes.open_files - sizes.open_files / 3);
  options.bytes_per_sync = mebibyte / 4;
  options.strict_bytes_per_sync = true;
  options.write_buffer_manager =
      std::make_shared<::rocksdb::WriteBufferManager>(4 * sizes.buffer_bytes);
  options.skip_stats_update_on_db_open = true;
  options.skip_checking_sst_file_sizes_on_db_open = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.keep_log_file_num = 2;
  options.max_log_file_size = mebibyte;
  options.info_log_level = ::rocksdb::InfoLogLevel::WARN_LEVEL;
  return options;
}

::rocksdb::DBOptions index_options_of_look(const LogSizes& sizes) {
  ::rocksdb::DBOptions options = index_options(sizes);
  options.create_if_missing = options.create_missing_column_families = false;
  options.max_open_files = -1;  // All at once, before that process deletes one.
  options.info_log = std::make_shared<NoLog>();
  return options;
}

std::vector<ColumnFamilyDescriptor> index_families(const LogSizes& sizes) {
  const auto cache = ::rocksdb::NewLRUCache(index_cache_bytes(sizes));
  std::vector<ColumnFamilyDescriptor> families;
  for (std::size_t i = 0; i < family_count; ++i) {
    families.emplace_back(family_names[i], family_options(static_cast<Family>(i), sizes, cache));
  }
  return families;
}

::rocksdb::WriteOptions without_log() {
  ::rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

::rocksdb::Status copy_changes(const ::rocksdb::WriteBatch& from, ::rocksdb::WriteBatchBase& to,
                               const std::vector<::rocksdb::ColumnFamilyHandle*>& handles) {
  Copy copy(to, handles);
  return from.Iterate(&copy);
}

void abandon(::rocksdb::DB* db, std::vector<::rocksdb::ColumnFamilyHandle*> handles) {
  struct Open {
    ::rocksdb::DB* db;
    std::vector<::rocksdb::ColumnFamilyHandle*> handles;
  };
  static std::mutex mutex;
  static auto* const all = new std::vector<Open>;
  const std::lock_guard lock(mutex);
  all->push_back({db, std::move(handles)});
}

}  // namespace idem::segments
