#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <optional>

namespace idem {

/// Limits the log lines about something that may fail a thousand times a second: a line for the
/// first failure of an outage at once, then one per interval with the number of failures since the
/// last line, and one at the recovery. Of outages that follow each other, `outages_max` per
/// interval get lines, so that a service which comes and goes writes few. Pure; one thread at a
/// time.
class OutageLines {
 public:
  /// Enough that an outage soon after another one is seen.
  static constexpr int outages_max = 3;

  struct Line {
    std::uint64_t failures = 0;  ///< Since the last line about a failure; of a recovery, in all.
    Millis lasting{};            ///< Since the first failure of this outage.
  };

  explicit OutageLines(Millis interval) noexcept : interval_(interval) {}

  /// After a failure: the line to write now, if any.
  std::optional<Line> failed(MonotonicTime now) noexcept {
    if (in_all_++ == 0) began_ = now;
    ++unreported_;
    if (!has_line_ || now - window_ >= interval_) {
      window_ = now;
      outages_ = 0;
    }
    const bool is_due = !has_line_ || now - last_line_ >= interval_;
    const bool is_new = !is_reported_ && outages_ < outages_max;
    if (!is_due && !is_new) return std::nullopt;
    if (!is_reported_) ++outages_;
    has_line_ = true;
    last_line_ = now;
    is_reported_ = true;
    const Line line{unreported_, now - began_};
    unreported_ = 0;
    return line;
  }

  /// After a success: the line to write now, if any. An outage without a line ends without one; the
  /// next line counts its failures.
  std::optional<Line> succeeded(MonotonicTime now) noexcept {
    const Line line{in_all_, now - began_};
    in_all_ = 0;
    if (!is_reported_) return std::nullopt;
    is_reported_ = false;
    return line;
  }

  bool is_failing() const noexcept { return in_all_ > 0; }

 private:
  Millis interval_;
  bool has_line_ = false;
  MonotonicTime last_line_{};  ///< About a failure.
  MonotonicTime window_{};     ///< Outages are counted for an interval from here.
  int outages_ = 0;            ///< With a line, since then.
  MonotonicTime began_{};
  std::uint64_t in_all_ = 0;  ///< Failures of this outage.
  std::uint64_t unreported_ = 0;
  bool is_reported_ = false;  ///< There is a line about this outage.
};

}  // namespace idem
