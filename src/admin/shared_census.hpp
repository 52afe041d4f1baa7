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

  /// For how long an answer of the store that took so long is shared: ten times that; one that was
  /// quick is not shared.
  static Millis rest_after(Millis took) noexcept;

  /// Asks the store.
  Task<Result> fresh();
  /// The last one if it is younger than this or than rest_after() says: so the store counts for a
  /// tenth of the time, however many ask. Its `now` is that of the answer.
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
