#pragma once

#include "store/postgres/connection.hpp"

#include <set>

namespace idem::postgres {

/// Makes the tables of days on which answers will expire, and drops those of past days.
class Days {
 public:
  /// Some answers will have this retention.
  void expect(Millis retention);
  bool is_due(MonotonicTime now) const noexcept { return now >= due_; }
  void postpone(MonotonicTime until) noexcept { due_ = until; }
  /// Does the due work. A failure is tried again at the next time: without its table a day's
  /// answers lie in the last one, which costs work and loses nothing.
  Task<void> keep(Connection& connection);

 private:
  std::set<Millis> retentions_;
  MonotonicTime due_ = MonotonicTime::max();
};

}  // namespace idem::postgres
