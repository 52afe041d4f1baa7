#pragma once

#include "store/embedded/ledger_store.hpp"

#include <memory>
#include <mutex>
#include <span>
#include <vector>

/// The verbs that concern all shards of a store at once. Each calls `done` once, on the thread of
/// one of the shards; the shards outlive that.
namespace idem::embedded {

using Shards = std::span<const std::unique_ptr<LedgerStore>>;

/// The records of all shards, by id.
void list_in(Shards shards, const List& verb, StoreCompletion done);
/// The sums. An age is that of the oldest.
void count_in(Shards shards, StoreCompletion done);
/// What has been due the longest in any shard.
void claim_in(Shards shards, const Claim& verb, StoreCompletion done);
/// Sweep or Reap: each shard makes an equal part of the steps, in its order of what became due, and
/// what some leave of their parts goes to the others. With a limit below the number of shards the
/// steps are those of all shards' order.
template <class Verb>
void make_due_steps_in(Shards shards, const Verb& verb, StoreCompletion done);

/// AdoptRoutes on all shards as on one: each waits for the others in the middle of a transaction,
/// and one of them decides for all. From any thread.
class Adoptions {
 public:
  void adopt_in(Shards shards, AdoptRoutes verb, StoreCompletion done);

 private:
  std::mutex mutex_;  ///< So that all shards come to the same meeting.
};

}  // namespace idem::embedded
