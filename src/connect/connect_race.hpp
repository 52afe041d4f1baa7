#pragma once

#include "connect/descriptor.hpp"
#include "connect/peer.hpp"

#include <cstdint>
#include <vector>

namespace idem {

/// Connects to the first of several addresses that accepts (Happy Eyeballs, RFC 8305 §5). A try
/// that is silent gets company after limits::connect_attempt_delay, and one that fails is followed
/// at once. Nothing is written to any of the sockets: TCP Fast Open is off, and the winner alone is
/// handed out. Its end closes all that are open.
///
/// It waits for nothing itself: one descriptor tells when there is something to do, so that a loop
/// and a thread that blocks can drive it alike. One thread at a time.
class ConnectRace {
 public:
  enum class State : std::uint8_t { connecting, connected, failed };

  /// In this order; see in_order_of_tries(). No limit of time: that is its user's.
  explicit ConnectRace(Peers peers);
  ConnectRace(const ConnectRace&) = delete;
  ConnectRace& operator=(const ConnectRace&) = delete;
  ~ConnectRace() = default;

  /// Begins, and later goes on with what `descriptor()` became readable for. After `connected` and
  /// `failed` there is nothing more to do.
  State advance(MonotonicTime now);
  int descriptor() const noexcept { return events_.get(); }

  /// Once, after `connected`. The socket is connected and does not block.
  OwnedDescriptor take_socket() noexcept { return std::move(won_); }
  const Peer& winner() const noexcept { return peers_[winner_]; }
  /// After `failed`: errno of the last try that failed.
  int error() const noexcept { return error_; }

 private:
  struct Try {
    std::size_t peer;
    OwnedDescriptor socket;
  };
  /// The first try that is connected has won. Those that failed are closed.
  bool look_at_tries(MonotonicTime now);
  void start_next(MonotonicTime now);
  void arm_timer(MonotonicTime now);

  Peers peers_;
  OwnedDescriptor events_;  ///< epoll(7): the sockets and the timer.
  OwnedDescriptor timer_;
  std::vector<Try> tries_;   ///< In the order of their starts.
  std::size_t next_ = 0;     ///< Of peers_.
  MonotonicTime next_at_{};  ///< When it is started at the latest.
  OwnedDescriptor won_;
  std::size_t winner_ = 0;
  int error_ = 0;
};

}  // namespace idem
