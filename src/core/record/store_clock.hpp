#pragma once

#include <idem/record.hpp>

#include <functional>
#include <optional>
#include <string>

/// The embedded store's clock (protocol.md §15): neither a step backwards nor a jump forwards of
/// this machine's wall clock can turn into a mass expiry.
namespace idem {

/// The clocks of a machine. Tests use their own.
struct HostClock {
  std::function<StoreTime()> wall;
  std::function<Millis()> uptime;  ///< Since boot, suspended time included; never goes back.
  std::string boot_id;             ///< Differs between boots; empty: not known.
};

/// This machine's.
HostClock this_host();
/// The clocks of this_host(), read.
StoreTime wall_time() noexcept;
Millis uptime() noexcept;
/// How far this machine's clock is before the store's, which said `there` between our `before` and
/// `after`: what the answer took is no difference.
Millis clock_ahead(StoreTime before, StoreTime there, StoreTime after) noexcept;
/// For a store that uses its server's clock: that clock as a test moves it; empty if no test moves
/// the clocks, so in every shipped binary.
std::function<StoreTime()> moved_server_clock();

/// A reading, stored with the records.
struct ClockMark {
  StoreTime store{};
  Millis uptime{};
  std::string boot_id;
};

/// Runs by the uptime alone, from a base chosen once: in the boot of `last`, that mark plus the
/// uptime since; otherwise the wall clock, but never earlier than the mark.
class StoreClock {
 public:
  StoreClock(HostClock host, const std::optional<ClockMark>& last);

  StoreTime now() const;
  ClockMark mark() const;

  /// Less time was counted since `last` than may have passed: the machine has rebooted, and its
  /// wall clock is before the mark or too far after it; or the mark is too far after the wall
  /// clock. Things that must not seem too young then count as old.
  bool has_lost_time() const noexcept { return has_lost_time_; }
  /// Nothing that ran at `last` can be running.
  bool was_restarted() const noexcept { return was_restarted_; }

 private:
  HostClock host_;
  Millis base_uptime_;
  StoreTime base_;
  bool was_restarted_ = false;
  bool has_lost_time_ = false;
};

}  // namespace idem
