#pragma once

#include "loop/loop.hpp"

#include <functional>

namespace idem {

/// Calls `end` once at a moment, so that what waits ends: it closes a socket or cancels a wait, and
/// nothing more (see Timed). Not after this object's end. Loop's thread only.
class Deadline final : Timed {
 public:
  Deadline(Loop& loop, MonotonicTime at, std::function<void()> end)
      : Timed(loop), at_(at), end_(std::move(end)) {}
  bool has_passed() const noexcept { return has_passed_; }

 private:
  void tick(MonotonicTime now) override {
    if (has_passed_ || now < at_) return;
    has_passed_ = true;
    end_();
  }
  MonotonicTime at_;
  std::function<void()> end_;
  bool has_passed_ = false;
};

}  // namespace idem
