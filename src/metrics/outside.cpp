#include "metrics/outside.hpp"

namespace idem::metrics {

std::string_view name_of(Forwarded result) noexcept {
  switch (result) {
    case Forwarded::answered:
      return "answered";
    case Forwarded::not_reached:
      return "not_reached";
    case Forwarded::timeout:
      return "timeout";
    case Forwarded::closed:
      return "closed";
    case Forwarded::malformed:
      return "malformed";
    case Forwarded::cut:
      return "cut";
    case Forwarded::unframed:
      return "unframed";
  }
  return "";
}

std::string_view name_of(Spanned result) noexcept {
  static constexpr std::array<std::string_view, spanned_count> names{"sent", "queue_full",
                                                                     "refused", "not_sent"};
  return names[static_cast<std::size_t>(result)];
}

std::string_view name_of(NotReached reason) noexcept {
  switch (reason) {
    case NotReached::resolve:
      return "resolve";
    case NotReached::connect:
      return "connect";
    case NotReached::timeout:
      return "timeout";
    case NotReached::tls:
      return "tls";
    case NotReached::closed:
      return "closed";
  }
  return "";
}

std::string_view name_of(Authorized result) noexcept {
  switch (result) {
    case Authorized::allowed:
      return "allowed";
    case Authorized::refused:
      return "refused";
    case Authorized::failed:
      return "failed";
  }
  return "";
}

std::string_view name_of(Answered result) noexcept {
  switch (result) {
    case Answered::found:
      return "found";
    case Answered::failed:
      return "failed";
    case Answered::not_there:
      return "not_there";
    case Answered::later:
      return "later";
  }
  return "";
}

std::string_view name_of(Unanswered reason) noexcept {
  switch (reason) {
    case Unanswered::connect:
      return "connect";
    case Unanswered::tls:
      return "tls";
    case Unanswered::timeout:
      return "timeout";
    case Unanswered::too_large:
      return "too_large";
    case Unanswered::protocol:
      return "protocol";
    case Unanswered::refused:
      return "refused";
    case Unanswered::status:
      return "status";
  }
  return "";
}

std::optional<OutageLines::Line> Availability::answered(MonotonicTime now) {
  const Millis::rep moment = now.time_since_epoch().count();
  const Millis::rep last = last_answer_.load(std::memory_order_relaxed);
  constexpr Millis::rep second = 1'000;
  if (last == never || moment - last >= second) {
    last_answer_.store(moment, std::memory_order_relaxed);
  }
  if (!is_failing_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  seen_.is_down = false;
  seen_.failures = 0;
  is_failing_.store(false, std::memory_order_release);
  return lines_.succeeded(now);
}

std::optional<OutageLines::Line> Availability::failed(MonotonicTime now, std::string_view reason,
                                                      std::string detail, bool is_proof) {
  const std::lock_guard lock(mutex_);
  ++seen_.failures;
  seen_.is_down = seen_.is_down || is_proof || seen_.failures >= limits::breaker_failures;
  seen_.reason = reason;
  seen_.detail = std::move(detail);
  seen_.failed_at = now;
  is_failing_.store(true, std::memory_order_release);
  return lines_.failed(now);
}

Availability::Seen Availability::seen() const {
  const std::lock_guard lock(mutex_);
  Seen seen = seen_;
  const auto last = last_answer_.load(std::memory_order_relaxed);
  if (last != never) seen.last_answer = MonotonicTime(Millis(last));
  return seen;
}

}  // namespace idem::metrics
