#include "gateway/passthrough/upload.hpp"

namespace idem::gateway {

using http::Wire;

void Upload::start() {
  ended_ = std::make_shared<Latch>(client_.loop());
  client_.loop().spawn(run(ended_));
}

std::string_view Upload::framed(std::string_view piece) {
  if (client_.head().framing != http::Framing::chunked) return piece;
  chunk_.clear();
  http::append_chunk(chunk_, piece);
  if (client_.body_finished()) chunk_ += http::last_chunk;
  return chunk_;
}

Task<void> Upload::run(std::shared_ptr<Latch> ended) {
  Wire& upstream = call_.wire();
  upstream.no_read_deadline();  // The upstream may wait for a slow client.
  const auto [first, second] = call_.take_unsent();
  bool sent = co_await write(first, second);
  bool received = true;
  while (sent && received && !client_.body_finished()) {
    const auto piece = co_await client_.next_piece();
    received = piece.has_value() && !stopped_;
    if (received) {
      if (onlooker_ != nullptr) onlooker_->request_piece(*piece);
      sent = co_await write(framed(*piece));
    } else if (!stopped_) {
      co_await give_up(piece.error());
    }
  }
  if (sent && received) call_.end_of_request();
  if (onlooker_ != nullptr && received && client_.body_finished()) onlooker_->request_whole();
  call_.sender_stopped();
  if (!refused_) {
    const MonotonicTime now = MonotonicClock::now();
    // After any other break an answer may have come before it.
    const bool late = !sent && upstream.trouble() == Wire::Trouble::timeout;
    upstream.read_deadline(late ? now : now + upstream_timeout_);
  }
  ended->open();
}

Task<bool> Upload::write(std::string_view first, std::string_view second) {
  Wire& upstream = call_.wire();
  upstream.write_deadline(MonotonicClock::now() + upstream_timeout_);
  const bool sent = co_await upstream.write(first, second);
  upstream.no_write_deadline();
  co_return sent;
}

Task<void> Upload::give_up(http::Refusal why) {
  Wire& upstream = call_.wire();
  if (answered_) {
    broke_off_ = true;
    upstream.write_deadline(MonotonicClock::now() + upstream_timeout_);
    co_await upstream.shutdown_send();  // The upstream need not wait for the rest.
    co_return;
  }
  refused_ = std::move(why);
  upstream.read_deadline(MonotonicClock::now());
  upstream.cancel();
}

Task<void> Upload::finish() { co_await ended_->wait(); }

Task<void> Upload::stop() {
  if (ended_->is_open()) co_return;
  stopped_ = true;
  call_.wire().cancel();
  client_.wire().interrupt_reads();
  co_await ended_->wait();
  client_.wire().allow_reads();
}

}  // namespace idem::gateway
