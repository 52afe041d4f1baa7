#include "store/copy_patience.hpp"

#include <algorithm>
#include <thread>

namespace idem {
namespace {

// A table that throttles has room again within a second, a server that fails over within some ten.
constexpr Millis first_pause{100};
constexpr Millis longest_pause{5'000};

}  // namespace

void CopyPatience::went_on() {
  since_ = MonotonicClock::now();
  pause_ = Millis(0);
}

bool CopyPatience::wait(const CopyError& error) {
  if (error.kind != CopyError::Kind::unavailable) return false;
  if (MonotonicClock::now() - since_ >= most_) return false;
  pause_ = std::clamp(pause_ * 2, first_pause, longest_pause);
  std::this_thread::sleep_for(pause_);
  return true;
}

}  // namespace idem
