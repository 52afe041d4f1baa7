#pragma once

#include <idem/record.hpp>

#include <optional>

namespace idem::redis {

/// What the clock of a server shows now, from what it said and when that came here. It is behind by
/// as much as the quickest of the latest replies took on its way, and never ahead, but for the
/// drift between two clocks.
class ServerClock {
 public:
  /// `said` came in at `at`.
  void heard(StoreTime said, MonotonicTime at) noexcept;
  /// Needs one heard().
  StoreTime at(MonotonicTime now) const noexcept;
  bool is_known() const noexcept { return offset_.has_value(); }

 private:
  std::optional<Millis> offset_;  ///< From our clock to the server's.
  MonotonicTime since_{};
};

}  // namespace idem::redis
