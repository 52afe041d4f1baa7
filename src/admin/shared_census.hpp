#pragma once

#include "loop/loop.hpp"

#include <idem/store.hpp>

#include <expected>
#include <optional>

namespace idem::admin {

/// Counts the records of the store, which takes a large one on PostgreSQL tenths of a second, for
/// several answers. Loop's thread only.
class SharedCensus {
 public:
  using Result = std::expected<Census, StoreError>;

  /// Both outlive it.
  SharedCensus(Loop& loop, Store& store) : loop_(loop), store_(store) {}

  /// Asks the store.
  Task<Result> fresh();
  /// The last one if it is younger than this, or if it took long and is younger than ten times
  /// that: so the store counts for a tenth of the time, however many ask. Its `now` is that of the
  /// answer.
  Task<Result> recent(Millis age);
  /// The next one is fresh: this process has changed a record's state.
  void forget() noexcept { last_.reset(); }

 private:
  Loop& loop_;
  Store& store_;
  std::optional<Census> last_;
  MonotonicTime asked_at_{};
  Millis took_{};
};

}  // namespace idem::admin
