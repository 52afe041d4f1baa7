#pragma once

#include "store/log/database.hpp"

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

/// How the index is kept in RocksDB. For the files that use RocksDB itself: no header includes
/// this.
namespace idem::segments {

::rocksdb::DBOptions index_options(const LogSizes& sizes);
::rocksdb::DBOptions index_options_of_look(const LogSizes& sizes);
/// In the order of Family.
std::vector<::rocksdb::ColumnFamilyDescriptor> index_families(const LogSizes& sizes);
/// The log of commits is the log.
::rocksdb::WriteOptions without_log();
/// Repeats the changes of one batch in another.
::rocksdb::Status copy_changes(const ::rocksdb::WriteBatch& from, ::rocksdb::WriteBatchBase& to,
                               const std::vector<::rocksdb::ColumnFamilyHandle*>& handles);
/// Of a store that must not be closed, until the process ends.
void abandon(::rocksdb::DB* db, std::vector<::rocksdb::ColumnFamilyHandle*> handles);

/// Of the cache; the filters of the table of ids have the rest.
inline std::size_t index_cache_bytes(const LogSizes& sizes) noexcept {
  return std::min<std::size_t>(sizes.cache_bytes / 8, 8UL << 20U);
}
inline std::string_view view(const ::rocksdb::Slice& slice) noexcept {
  return {slice.data(), slice.size()};
}
inline ::rocksdb::Slice slice(std::string_view bytes) noexcept {
  return {bytes.data(), bytes.size()};
}
inline std::string index_of(const std::string& path) { return path + "/index"; }

}  // namespace idem::segments
