#pragma once

#include "core/exchange/backoff.hpp"
#include "core/exchange/outage.hpp"

#include <idem/log.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace idem::workers {

/// The failures in a row of work that repeats several times a second: few log lines about them, one
/// when the work succeeds again, and a rest that grows meanwhile. One thread at a time.
class Failures {
 public:
  struct Events {
    std::string_view failed;
    std::string_view recovered;
    std::string_view detail = "detail";  ///< The field that says why.
  };
  /// `subject`: a field of every line; without a text it is left out.
  explicit Failures(Events events, LogField subject = {"", ""})
      : events_(events), subject_(std::move(subject)) {}

  void failed(const LogSink& log, const std::string& detail) {
    if (in_a_row_ < in_a_row_max) ++in_a_row_;
    if (const auto line = lines_.failed(MonotonicClock::now())) {
      write(log, LogLevel::warning, events_.failed, *line, {events_.detail, detail});
    }
  }

  void succeeded(const LogSink& log) {
    in_a_row_ = 0;
    if (const auto line = lines_.succeeded(MonotonicClock::now())) {
      write(log, LogLevel::info, events_.recovered, *line, {"", ""});
    }
  }

  /// `interval`, doubled with each failure in a row up to limits::breaker_pause_first; a longer
  /// `interval` stays as it is.
  Millis rest(Millis interval) const noexcept {
    const Millis most = std::max<Millis>(interval, limits::breaker_pause_first);
    return backoff(in_a_row_ + 1, interval, most, 0);
  }

 private:
  static constexpr int in_a_row_max = 40;  // A rest has reached its maximum long before.

  void write(const LogSink& log, LogLevel level, std::string_view event,
             const OutageLines::Line& line, const LogField& detail) const {
    const LogField failures{"failures", line.failures};
    const LogField seconds{"seconds", line.lasting.count() / 1'000};
    const bool has_subject = !subject_.value.empty();
    if (detail.value.empty() && has_subject) {
      log(level, event, {subject_, failures, seconds});
    } else if (detail.value.empty()) {
      log(level, event, {failures, seconds});
    } else if (has_subject) {
      log(level, event, {subject_, detail, failures, seconds});
    } else {
      log(level, event, {detail, failures, seconds});
    }
  }

  Events events_;
  LogField subject_;
  OutageLines lines_{limits::outage_line_interval};
  int in_a_row_ = 0;
};

}  // namespace idem::workers
