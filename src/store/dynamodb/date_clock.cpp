#include "store/dynamodb/date_clock.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"

#include <idem/assert.hpp>

#include <algorithm>

namespace idem::dynamodb {

DateClock::Window DateClock::widened(Window window, MonotonicTime now) noexcept {
  // 1 in 2,048: more than a crystal and a slewing NTP daemon deviate together (500 ppm at most).
  const Millis drift = std::max(Millis(0), now - window.seen) / 2'048;
  return {window.from - drift, window.until + drift, now};
}

void DateClock::observe(StoreTime date, MonotonicTime sent, MonotonicTime received) noexcept {
  using namespace std::chrono_literals;
  const Window found{date.time_since_epoch() - received.time_since_epoch(),
                     date.time_since_epoch() + 1s - sent.time_since_epoch(), received};
  if (!window_) {
    window_ = found;
    return;
  }
  const auto both = [](const Window& a, const Window& b) {
    return Window{std::max(a.from, b.from), std::min(a.until, b.until), b.seen};
  };
  const Window known = widened(*window_, received);
  const Window narrowed = both(known, found);
  if (narrowed.from <= narrowed.until) {
    // Rewritten only when it gains, so that rounding does not add up over many answers.
    if (narrowed.from > known.from || narrowed.until < known.until) window_ = narrowed;
    others_ = 0;
    other_.reset();
    return;
  }
  const Window others = other_ ? both(widened(*other_, received), found) : found;
  const bool do_agree = others.from <= others.until;
  other_ = do_agree ? others : found;
  others_ = do_agree ? others_ + 1 : 1;
  if (others_ < limits::dynamodb_clock_answers) return;
  window_ = other_;
  other_.reset();
  others_ = 0;
}

StoreTime DateClock::at(MonotonicTime now) const noexcept {
  IDEM_ASSERT(window_.has_value());
  return StoreTime(now.time_since_epoch() + widened(*window_, now).from);
}

Millis DateClock::uncertainty(MonotonicTime now) const noexcept {
  IDEM_ASSERT(window_.has_value());
  const Window window = widened(*window_, now);
  return window.until - window.from;
}

}  // namespace idem::dynamodb
