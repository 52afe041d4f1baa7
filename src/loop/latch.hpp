#pragma once

#include "loop/loop.hpp"

#include <memory>

namespace idem {

/// Lets one coroutine wait for another of the same loop. Opened once; one may wait. Loop's thread
/// only.
class Latch {
 public:
  explicit Latch(Loop& loop);
  ~Latch();
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;
  void open() noexcept;
  Task<void> wait();
  bool is_open() const noexcept { return open_; }

 private:
  struct Event;
  std::unique_ptr<Event> event_;
  bool open_ = false;
};

}  // namespace idem
