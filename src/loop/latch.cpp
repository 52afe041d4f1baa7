#include "loop/latch.hpp"

namespace idem {

Latch::Latch(Loop& loop) : timer_(loop.context(), Timer::time_point::max()) {}

void Latch::open() noexcept {
  open_ = true;
  timer_.cancel();
}

Task<void> Latch::wait() {
  if (open_) co_return;
  using Cancelled = boost::system::error_code;
  const auto start = [this](Resumption<Cancelled> opened) { timer_.async_wait(std::move(opened)); };
  auto waiting = suspend<Cancelled>(start);
  co_await waiting;
}

}  // namespace idem
