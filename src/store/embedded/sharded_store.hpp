#pragma once

#include "store/embedded/wide_reserve.hpp"

namespace idem::embedded {

/// A store of several ledgers, its shards: a record belongs to the one that shard_of() says. The
/// first has the journals and the naming of records.
class ShardedStore final : public Store {
 public:
  /// At least one. Their ledgers have one InCommon, and the clock of each counts from one mark.
  explicit ShardedStore(std::vector<std::unique_ptr<LedgerStore>> shards);
  ~ShardedStore() override;

  void call(StoreCall what, StoreCompletion done) override;
  void watch(std::shared_ptr<Watcher> watcher) override;
  const Identity& identity() const noexcept override { return shards_.front()->identity(); }
  std::size_t lifecycle_slice() const noexcept override {
    return shards_.front()->lifecycle_slice() * shards_.size();
  }
  std::optional<std::uint64_t> asked() const noexcept override;

 private:
  bool is_quiet() const noexcept;
  LedgerStore& shard_of(const RecordId& id) const noexcept;
  class Routing;

  std::vector<std::unique_ptr<LedgerStore>> shards_;
  Reserving reserving_{shards_};
  Adoptions adoptions_;
};

}  // namespace idem::embedded
