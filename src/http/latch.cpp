#include "http/latch.hpp"

#include <boost/asio/redirect_error.hpp>

namespace idem::http {

Latch::Latch(Loop& loop) : timer_(loop.context(), Timer::time_point::max()) {}

void Latch::open() noexcept {
  open_ = true;
  timer_.cancel();
}

Task<void> Latch::wait() {
  if (open_) co_return;
  boost::system::error_code cancelled;
  auto token = asio::redirect_error(resume, cancelled);
  co_await timer_.async_wait(token);
}

}  // namespace idem::http
