#pragma once

#include "connect/connect_limits.hpp"

#include <idem/record.hpp>

namespace idem::mysql {

/// The client library tries the addresses of a name one after the other, and waits for a silent one
/// for ever. So a try ends after a while, and then the library takes the next address; if none of
/// them accepted, each has four times as long in the next round, because a server may be that far
/// away. Only connecting is cut short, before a byte is sent: a server that was met is the one.
class Rounds {
 public:
  MonotonicTime end_of_try() const noexcept { return MonotonicClock::now() + for_each_; }
  void cut_try() noexcept { was_cut_ = true; }
  void met_server() noexcept { has_met_ = true; }
  /// False: another round would end as this one.
  bool begin_next() noexcept {
    if (!was_cut_ || has_met_) return false;
    was_cut_ = false;
    for_each_ *= 4;
    return true;
  }

 private:
  Millis for_each_ = limits::connect_attempt_delay;
  bool was_cut_ = false;
  bool has_met_ = false;
};

/// Whether this socket waits for its peer to accept.
bool is_connecting(int socket) noexcept;

}  // namespace idem::mysql
