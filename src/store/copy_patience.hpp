#pragma once

#include "store/store_copy.hpp"

namespace idem {

/// Lets a copy go on where a store did not answer, or answered that too much is asked of it: after
/// a pause, which grows, what failed is read and compared anew, so it does not matter how much of
/// it was done.
class CopyPatience {
 public:
  /// `most`: how long nothing may go on.
  explicit CopyPatience(Millis most) : most_(most) {}

  /// Something was copied.
  void went_on();
  /// Waits, if `error` may pass. False: it will not, or nothing has gone on for too long.
  bool wait(const CopyError& error);

 private:
  Millis most_;
  Millis pause_{};
  MonotonicTime since_ = MonotonicClock::now();
};

}  // namespace idem
