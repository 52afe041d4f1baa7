#pragma once

#include <memory>
#include <vector>

namespace idem {

/// A thread that sleeps until there is work for it. It outlives the turn in which it is woken.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  virtual void wake() noexcept = 0;
};

/// A stretch of a thread's work. The thread wakes others for what it leaves to them at the end of
/// its turn: so they find all of it at once, and do not take the processor from it before. Within
/// its turn a thread must not wait for another one, but behind about_to_wait()
/// (<idem/store_wait.hpp>). One at a time on a thread.
class Turn {
 public:
  Turn();
  virtual ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Wakes those up that wait for the end of this turn; the next one begins. This thread only.
  void end() noexcept;

  /// Wakes it at the end of the calling thread's turn; at once, if that has none.
  static void wake_at_end(const std::shared_ptr<Sleeper>& one);
  /// The calling thread's; null: it has none.
  static Turn* current() noexcept;

 protected:
  /// The first one of this turn waits for its end.
  virtual void has_begun() {}

 private:
  std::vector<std::shared_ptr<Sleeper>> to_wake_;
  std::vector<std::shared_ptr<Sleeper>> waking_;
};

}  // namespace idem
