#pragma once

#include "store/log/family.hpp"

#include <rocksdb/listener.h>

#include <atomic>

namespace idem::segments {

/// Learns from RocksDB's threads which families its compactions cannot read. Such a compaction must
/// not end all writes, as it does by itself.
class IndexWatch final : public ::rocksdb::EventListener {
 public:
  void OnCompactionCompleted(::rocksdb::DB* db, const ::rocksdb::CompactionJobInfo& job) override;
  void OnBackgroundError(::rocksdb::BackgroundErrorReason reason,
                         ::rocksdb::Status* error) override;

  /// What was found since the last call. Of one thread.
  Families take() noexcept {
    if (found_.load(std::memory_order_relaxed) == 0) return {};
    return Families(found_.exchange(0));
  }

 private:
  static bool is_of_damage(const ::rocksdb::Status& status) noexcept;

  std::atomic<std::uint64_t> found_{0};
};

}  // namespace idem::segments
