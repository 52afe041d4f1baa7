#pragma once

#include "store/postgres/connection.hpp"

#include <set>

namespace idem::postgres {

/// Sees to it that there is a table for each day on which answers will expire, and none for days
/// that are over.
class Days {
 public:
  /// Answers will be kept for so long.
  void expect(Millis retention);
  bool is_due(MonotonicTime now) const noexcept { return now >= due_; }
  void postpone(MonotonicTime until) noexcept { due_ = until; }
  /// Does what is due. What fails is tried again: without its table a day's answers lie in the last
  /// one, which costs work and loses nothing.
  Task<void> keep(Connection& connection);

 private:
  std::set<Millis> retentions_;
  MonotonicTime due_ = MonotonicTime::max();
};

}  // namespace idem::postgres
