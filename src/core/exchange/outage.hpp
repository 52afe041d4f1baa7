#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <optional>

namespace idem {

/// Which lines are written about something that may fail a thousand times a second: the first
/// failure at once, then one line an interval with the number of failures since the last one, and
/// one when it works again. No more than two lines an interval, however often it comes and goes.
/// Pure; one thread at a time.
class OutageLines {
 public:
  struct Line {
    std::uint64_t failures = 0;  ///< Since the last line about a failure; of a recovery, in all.
    Millis lasting{};            ///< Since the first failure of this outage.
  };

  explicit OutageLines(Millis interval) noexcept : interval_(interval) {}

  /// After a failure: the line to write now, if any.
  std::optional<Line> failed(MonotonicTime now) noexcept {
    if (in_all_++ == 0) began_ = now;
    ++untold_;
    if (has_line_ && now - last_line_ < interval_) return std::nullopt;
    has_line_ = true;
    last_line_ = now;
    is_told_ = true;
    const Line line{untold_, now - began_};
    untold_ = 0;
    return line;
  }

  /// After a success: the line to write now, if any. An outage of which no line was written ends
  /// without one; its failures are counted in the next line.
  std::optional<Line> succeeded(MonotonicTime now) noexcept {
    const Line line{in_all_, now - began_};
    in_all_ = 0;
    if (!is_told_) return std::nullopt;
    is_told_ = false;
    return line;
  }

  bool is_failing() const noexcept { return in_all_ > 0; }

 private:
  Millis interval_;
  bool has_line_ = false;
  MonotonicTime last_line_{};  ///< About a failure.
  MonotonicTime began_{};
  std::uint64_t in_all_ = 0;  ///< Failures of this outage.
  std::uint64_t untold_ = 0;
  bool is_told_ = false;  ///< There is a line about this outage.
};

}  // namespace idem
