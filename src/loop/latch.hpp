#pragma once

#include "loop/loop.hpp"

namespace idem {

/// Lets one coroutine wait for another of the same loop. Opened once; one may wait. Loop's thread
/// only.
class Latch {
 public:
  explicit Latch(Loop& loop);
  void open() noexcept;
  Task<void> wait();
  bool is_open() const noexcept { return open_; }

 private:
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>, Executor>;
  Timer timer_;  ///< Never runs out: cancelling it is the event.
  bool open_ = false;
};

}  // namespace idem
