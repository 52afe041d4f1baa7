#pragma once

#include <rocksdb/memtablerep.h>

#include <memory>

namespace idem::segments {

/// RocksDB's buffer of changes for keys that are digests: an array of short lists, ordered by the
/// first bytes of the keys. As digests spread evenly, a list has about one entry: so an entry is
/// found by one look, and the order that a flush needs is there already. RocksDB's own hashed
/// buffers sort all entries at a flush, which was a twelfth of a gateway's whole processor time.
///
/// `buffer_bytes`: the size at which the buffer is flushed.
std::shared_ptr<::rocksdb::MemTableRepFactory> digest_buffers(std::size_t buffer_bytes);

}  // namespace idem::segments
