#pragma once

#include <idem/record.hpp>

#include <functional>
#include <optional>
#include <string>

/// The embedded store's clock (protocol.md §15): neither a step backwards nor a jump forwards of
/// this machine's wall clock can turn into a mass expiry.
namespace idem {

/// What the clock is made of. Tests put their own in.
struct HostClock {
  std::function<StoreTime()> wall;
  std::function<Millis()> uptime;  ///< Since boot, suspended time included; never goes back.
  std::string boot_id;             ///< Tells one boot from another; empty: not known.
};

/// This machine's.
HostClock this_host();
/// The clocks of this_host(), read.
StoreTime wall_time() noexcept;
Millis uptime() noexcept;
/// For a store whose clock is a server's: what that would show, where a test moves the clocks;
/// empty where none does, that is in every shipped binary.
std::function<StoreTime()> moved_server_clock();

/// A reading to be kept with the records.
struct ClockMark {
  StoreTime store{};
  Millis uptime{};
  std::string boot_id;
};

/// Runs by the uptime alone, from a base chosen once: within the boot of `last`, where that mark
/// would be by now; otherwise the wall clock, but never earlier than the mark.
class StoreClock {
 public:
  StoreClock(HostClock host, const std::optional<ClockMark>& last);

  StoreTime now() const;
  ClockMark mark() const;

  /// How much time went by since `last` is not known: the machine was started anew, and its wall
  /// clock says what cannot be, or more than is believed. What must not seem to be younger than it
  /// is counts as old then.
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
