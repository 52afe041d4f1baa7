#pragma once

#include "gateway/shadow/turns.hpp"

#include <atomic>
#include <cstddef>

namespace idem::gateway {

/// What the observations of all loops share: their places, the memory of their copies, and the
/// order in which requests of one key reach the store. Safe from any thread.
class ShadowRoom {
 public:
  /// False: limits::shadow_observations_max are under way.
  bool take_place() noexcept;
  void give_place() noexcept { places_.fetch_sub(1, std::memory_order_acq_rel); }
  std::size_t under_way() const noexcept { return places_.load(std::memory_order_acquire); }

  /// False: there would be more than limits::shadow_bytes_max.
  bool take_bytes(std::size_t bytes) noexcept;
  void give_bytes(std::size_t bytes) noexcept {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  /// From the moment at which an attempt has its answer to the one at which its record says so: a
  /// client may send its retry now, which enforcement would have answered from the record.
  Turns& ends() noexcept { return ends_; }
  /// While the store is asked for a reserve. It may do later calls first: the end of an attempt
  /// that ran then would come before.
  Turns& asks() noexcept { return asks_; }

  /// After the loops have stopped, and before they go.
  void close() {
    ends_.close();
    asks_.close();
  }

 private:
  std::atomic<std::size_t> places_{0};
  std::atomic<std::size_t> bytes_{0};
  Turns ends_;
  Turns asks_;
};

}  // namespace idem::gateway
