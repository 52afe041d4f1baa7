#pragma once

#include "store/calls_under_way.hpp"

#include <idem/store.hpp>

#include <list>
#include <mutex>
#include <optional>

namespace idem {

/// Gives back what a store grants to askers that were given up: nothing is sent under such an
/// attempt, and its key must not wait for the end of a lease. Safe from any thread.
class OrphanedAttempts {
 public:
  /// `interval`: between two tries.
  OrphanedAttempts(Store& store, Millis interval) : store_(store), interval_(interval) {}
  OrphanedAttempts(const OrphanedAttempts&) = delete;
  OrphanedAttempts& operator=(const OrphanedAttempts&) = delete;

  /// The reply to a reserve or a claim that was late. Asks for the release at once.
  void take(AskedFor asked, const StoreResult& reply);
  /// When try_again() has something to do.
  std::optional<MonotonicTime> next() const;
  void try_again(MonotonicTime now);

 private:
  /// One that is not released yet.
  struct Orphan {
    AskedFor asked;
    std::optional<Fence> fence{};  ///< None: the store's reply was lost, too.
    std::size_t tried = 0;         ///< Names, in this round.
    MonotonicTime until{};         ///< Its lease is over then, whenever it began.
    MonotonicTime due{};
  };
  void release(Orphan orphan);
  void answered(Orphan orphan, const StoreResult& reply);
  void keep(Orphan orphan);

  Store& store_;
  const Millis interval_;
  mutable std::mutex mutex_;
  std::list<Orphan> waiting_;  ///< In the order in which they are due.
};

}  // namespace idem
