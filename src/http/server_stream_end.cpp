#include "http/server_stream.hpp"

#include "loop/asio.hpp"

#include <idem/limits.hpp>

#include <algorithm>

/// How a connection ends: the server reads what the client still sends for a while.
namespace idem::http {

// A client that was too slow may still be sending. One that has closed, or whose connection broke,
// sends nothing more.
bool ServerStream::can_linger() const noexcept {
  const auto trouble = wire_.trouble();
  return answered_ && (trouble == Wire::Trouble::none || trouble == Wire::Trouble::timeout);
}

// Many clients send all of their request before they read, or give up at the first error of a
// write: had we closed, they would get that error from the kernel and never the answer.
Task<void> ServerStream::linger(LingerRoom& room) {
  const MonotonicTime begun = MonotonicClock::now();
  linger_until_ = begun + limits::linger_time_max;
  MonotonicTime last_byte_at = begun;
  std::optional<LingerRoom::Place> place;
  std::uint64_t dropped = 0;
  for (;;) {
    wire_.consume(wire_.unread().size());
    const auto rate = limits::body_rate_bytes_per_second_min;
    const Millis earned(static_cast<std::int64_t>(dropped * 1000 / rate));
    MonotonicTime until = begun + limits::linger_brief_time;
    if (place) until = std::min(last_byte_at, begun + earned) + limits::linger_silence_max;
    until = std::min(until, *linger_until_);
    wire_.read_deadline(until);
    const std::size_t got = co_await wire_.read_some();
    dropped += got;
    if (got > 0) last_byte_at = MonotonicClock::now();
    const bool is_late = got == 0 && wire_.trouble() == Wire::Trouble::timeout;
    if (got == 0 && !is_late) break;
    if (place && (is_late || place->ended())) break;
    if (!place && (is_late || dropped > limits::linger_brief_bytes)) {
      if (!peer_address_ || draining_) break;
      auto taken = room.take(*peer_address_, lingers_as_);
      if (!taken) break;
      place.emplace(std::move(*taken));
    }
    if (MonotonicClock::now() >= *linger_until_) break;
  }
  linger_until_.reset();
}

void ServerStream::reset() noexcept {
  boost::system::error_code ignored;
  wire_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  wire_.socket().close(ignored);
}

Task<void> ServerStream::close(LingerRoom& room) {
  receive_at_ = send_at_ = MonotonicTime::max();
  if (aborted_) {
    reset();
    co_return;
  }
  if (can_linger()) {
    wire_.write_deadline(MonotonicClock::now() + limits::linger_brief_time);
    co_await wire_.shutdown_send();
    wire_.unpin();
    co_await linger(room);
  }
  boost::system::error_code ignored;
  wire_.socket().close(ignored);
}

}  // namespace idem::http
