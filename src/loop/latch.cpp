#include "loop/latch.hpp"

#include "loop/asio.hpp"

namespace idem {

struct Latch::Event {
  LoopTimer timer;  ///< Never runs out: cancelling it is the event.
};

Latch::Latch(Loop& loop)
    : event_(new Event{LoopTimer(loop.context(), LoopTimer::time_point::max())}) {}

Latch::~Latch() = default;

void Latch::open() noexcept {
  open_ = true;
  event_->timer.cancel();
}

Task<void> Latch::wait() {
  if (open_) co_return;
  using Cancelled = boost::system::error_code;
  const auto start = [this](Resumption<Cancelled> opened) {
    event_->timer.async_wait(std::move(opened));
  };
  auto waiting = suspend<Cancelled>(start);
  co_await waiting;
}

}  // namespace idem
