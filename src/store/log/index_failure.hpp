#pragma once

#include <idem/store.hpp>

#include <string>

namespace rocksdb {
class Status;
}  // namespace rocksdb

/// What a failure at the start of a store, or of its index in RocksDB, means: damage, another
/// process, or what keeps this one from its files.
namespace idem::segments {

/// Why the store in the directory `path` is not opened, where a part of it looks so damaged that
/// keys could run again; or what keeps this process from its files, as that looks alike.
std::string damaged(const std::string& path, const std::string& what);
/// Likewise, of a part without which nothing can be read.
std::string lacking(const std::string& path, const std::string& what);

/// The words of a status: the system's, with what to do, where RocksDB only passes them on.
std::string words_of(const ::rocksdb::Status& status, const std::string& path);

/// True if the index was not opened because of its lock, or because this process may not use a file
/// of it. Then nothing is known of what is in its files.
bool is_kept_out(const ::rocksdb::Status& status);

/// Of an index that could not be opened. `unavailable`: another process has it.
StoreError database_failure(const std::string& path, const ::rocksdb::Status& status);

}  // namespace idem::segments
