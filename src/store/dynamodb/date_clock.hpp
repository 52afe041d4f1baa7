#pragma once

#include <idem/record.hpp>

#include <optional>

/// The service's clock, as far as its answers show it. A `Date` field names a whole second, so one
/// answer says that the service's time lay in that second at some moment between the request and
/// the answer. Each further answer narrows the offset between its clock and this machine's
/// monotonic clock, to less than a round trip once answers come from both sides of a second's end.
/// This machine's wall clock plays no part, so a machine whose clock is wrong ends no lease early.
namespace idem::dynamodb {

class DateClock {
 public:
  void observe(StoreTime date, MonotonicTime sent, MonotonicTime received) noexcept;
  bool is_known() const noexcept { return window_.has_value(); }

  /// The earliest time that it may be at the service. Needs one observe() before.
  StoreTime at(MonotonicTime now) const noexcept;
  /// How much later it may be there. What must not end too early lasts so much longer.
  Millis uncertainty(MonotonicTime now) const noexcept;

 private:
  /// Of the offset from our clock to the service's, as of `seen`.
  struct Window {
    Millis from{};
    Millis until{};
    MonotonicTime seen{};
  };
  /// As of a later moment: the clocks may have drifted apart.
  static Window widened(Window window, MonotonicTime now) noexcept;

  std::optional<Window> window_;
  /// What recent answers say that contradict the window: one server may be wrong, all are right.
  std::optional<Window> other_;
  int others_ = 0;
};

}  // namespace idem::dynamodb
