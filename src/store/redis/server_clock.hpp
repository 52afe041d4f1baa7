#pragma once

#include <idem/record.hpp>

#include <optional>

namespace idem::redis {

/// Estimates a server's clock from the moments in its replies and the moments of their arrival. The
/// estimate lags by the travel time of the quickest recent reply, and is never ahead, except for
/// the drift between the two clocks.
class ServerClock {
 public:
  /// A reply with the server's moment `server` arrived at `at`.
  void observe(StoreTime server, MonotonicTime at) noexcept;
  /// Needs one observe() before.
  StoreTime at(MonotonicTime now) const noexcept;
  bool is_known() const noexcept { return offset_.has_value(); }

 private:
  std::optional<Millis> offset_;  ///< From our clock to the server's.
  MonotonicTime since_{};
};

}  // namespace idem::redis
