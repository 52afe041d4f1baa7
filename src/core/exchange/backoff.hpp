#pragma once

#include <idem/record.hpp>

#include <algorithm>

/// When to try again, and whether to try at all. Pure.
namespace idem {

/// The pause before try `number` + 1: `first`, doubled with each try, at most `max`. `dice` (0 to
/// 1) shortens it by up to half.
inline Millis backoff(int number, Millis first, Millis max, double dice) noexcept {
  const int doublings = std::clamp(number - 1, 0, 40);
  const auto whole = static_cast<double>(first.count()) * static_cast<double>(1ULL << doublings);
  const auto capped = std::min(whole, static_cast<double>(max.count()));
  return Millis(static_cast<Millis::rep>(capped * (1 - dice / 2)));
}

/// Circuit breaker (Nygard, "Release It!", 2007): after some failures in a row it allows no try for
/// a pause, then one.
class Breaker {
 public:
  struct Rule {
    int failures = 5;
    Millis pause_first{};
    Millis pause_max{};
    Millis lasting{};  ///< From the first of those failures to the one that opens it, at least.
  };
  explicit Breaker(Rule rule) : rule_(rule) {}

  bool is_open(MonotonicTime now) const noexcept { return now < open_until_; }
  /// It opened, and nothing has succeeded since: after the pause, one try is allowed.
  bool is_on_trial() const noexcept { return pauses_ > 0; }
  MonotonicTime open_until() const noexcept { return open_until_; }

  void succeeded() noexcept {
    failures_ = 0;
    pauses_ = 0;
    open_until_ = {};
  }
  void failed(MonotonicTime now) noexcept {
    if (failures_ == 0) failing_since_ = now;
    failures_ = std::min(failures_ + 1, rule_.failures);
    if (failures_ < rule_.failures || now - failing_since_ < rule_.lasting) return;
    open(now);
  }
  /// Without a count: one failure was enough.
  void open(MonotonicTime now) noexcept {
    failures_ = rule_.failures;
    open_until_ = now + backoff(++pauses_, rule_.pause_first, rule_.pause_max, 0);
  }

 private:
  Rule rule_;
  int failures_ = 0;
  int pauses_ = 0;
  MonotonicTime failing_since_{};
  MonotonicTime open_until_{};
};

}  // namespace idem
