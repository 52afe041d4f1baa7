#include "http/upstream_call.hpp"

#include "http/connection_login.hpp"

#include <idem/crash_point.hpp>
#include <idem/limits.hpp>

#include <sys/socket.h>

namespace idem::http {

using Result = std::expected<void, UpstreamCall::Failure>;

UpstreamCall::Failure UpstreamCall::failure() const noexcept {
  if (nothing_sent()) return Failure::nothing_sent;
  return wire_->trouble() == Wire::Trouble::timeout ? Failure::timeout : Failure::closed;
}

Task<Result> UpstreamCall::run(std::string_view method, std::string_view head,
                               std::string_view body, MonotonicTime not_after,
                               MonotonicTime deadline, const InterimSink& on_interim) {
  wire_->deadline(deadline);
  crash_point(CrashPoint::dispatch_before_first_byte);
  // The clock is read right before the send: a process that was stopped must not send for an
  // attempt that it may have lost.
  if (MonotonicClock::now() > not_after) co_return Result(std::unexpected(Failure::nothing_sent));
  if (crash_point_armed(CrashPoint::dispatch_mid_request)) {
    const std::size_t half = head.size() / 2;
    const std::size_t taken = wire_->write_now(head.substr(0, half));
    crash_point(CrashPoint::dispatch_mid_request);
    head.remove_prefix(taken);
  }
  end_of_request();
  const auto sent = co_await send(head, body, not_after);
  if (!sent) co_return sent;
  crash_point(CrashPoint::dispatch_sent);
  const auto answered = co_await read_head(method, on_interim);
  if (answered) crash_point(CrashPoint::response_head);
  co_return answered;
}

Task<Result> UpstreamCall::send(std::string_view first, std::string_view second,
                                MonotonicTime not_after) {
  if (nothing_sent()) logs_in_ = logs_in_connection(first);
  unsent_first_ = first;
  unsent_second_ = second;
  while (!unsent_first_.empty() || !unsent_second_.empty()) {
    // Checked again after each wait for room, as long as no byte was sent.
    if (nothing_sent() && MonotonicClock::now() > not_after) {
      co_return Result(std::unexpected(Failure::nothing_sent));
    }
    const std::size_t taken = wire_->write_now(unsent_first_, unsent_second_);
    note_taken(taken);
    if (taken > 0) continue;
    if (wire_->trouble() != Wire::Trouble::none) {
      if (nothing_sent()) co_return Result(std::unexpected(Failure::nothing_sent));
      break;  // An answer may be waiting in the receive buffer: read before believing the error.
    }
    if (wire_->something_here()) break;  // An early final answer (RFC 9112 §9.3), or its end.
    const bool woken = co_await wire_->wait_any();
    if (!woken && wire_->trouble() == Wire::Trouble::timeout) {
      co_return Result(std::unexpected(failure()));
    }
  }
  co_return Result();
}

Task<Result> UpstreamCall::read_head(std::string_view method, const InterimSink& on_interim) {
  std::size_t scanned = 0;
  for (;;) {
    const auto parsed = parse_response_head(wire_->unread(), scanned, method, head_);
    if (!parsed) co_return Result(std::unexpected(Failure::malformed));
    if (!parsed->has_value()) {
      const std::size_t got = co_await wire_->read_some();
      if (got == 0) co_return Result(std::unexpected(failure()));
      continue;
    }
    wire_->consume(**parsed);
    if (head_.status >= 200 || (head_.status == 101 && may_switch_)) break;
    // A 101 to a request without an Upgrade is not HTTP.
    if (head_.status == 101 || ++interims_ > limits::interim_responses_max) {
      co_return Result(std::unexpected(Failure::malformed));
    }
    if (head_.status != 100 && on_interim) co_await on_interim(head_);
    wire_->unpin();  // Makes room: interim answers must not fill the buffer before the final head.
    scanned = 0;
    if (answered_while_sending()) {
      const auto sent = co_await send(unsent_first_, unsent_second_);
      if (!sent) co_return sent;
    }
  }
  logs_in_ = logs_in_ || logs_in_connection(head_.fields);
  wire_->pin();
  body_.begin(head_.framing, head_.content_length);
  early_ = answered_while_sending();
  co_return Result();
}

void UpstreamCall::send_some() {
  while (answered_while_sending() && wants_rest()) {
    const std::size_t taken = wire_->write_now(unsent_first_, unsent_second_);
    if (taken == 0) return;
    note_taken(taken);
  }
}

Task<std::expected<std::string_view, BodyReader::Failure>> UpstreamCall::next_piece() {
  while (answered_while_sending() && wants_rest() && !body_.finished()) {
    send_some();
    const auto piece = body_.next_if_here(*wire_);
    if (!piece || !piece->empty() || body_.finished()) co_return piece;
    bool went_on = false;
    if (wire_->something_here()) {
      const std::size_t got = co_await wire_->read_some();
      went_on = got > 0;
    } else {
      went_on = co_await wire_->wait_any();
    }
    if (!went_on) break;
  }
  auto piece = co_await body_.next(*wire_);
  co_return piece;
}

Task<void> UpstreamCall::finish_sending() {
  send_some();
  while (answered_while_sending() && wants_rest() && wire_->trouble() == Wire::Trouble::none) {
    const bool writable = co_await wire_->wait_writable();
    if (!writable) co_return;
    send_some();
  }
}

std::pair<std::string_view, std::string_view> UpstreamCall::take_unsent() noexcept {
  request_ended_ = false;
  sent_elsewhere_ = true;
  return {std::exchange(unsent_first_, {}), std::exchange(unsent_second_, {})};
}

void UpstreamCall::note_taken(std::size_t taken) noexcept {
  const std::size_t of_first = std::min(taken, unsent_first_.size());
  unsent_first_.remove_prefix(of_first);
  unsent_second_.remove_prefix(taken - of_first);
  if (unsent_first_.empty()) std::swap(unsent_first_, unsent_second_);
}

std::unique_ptr<Wire> UpstreamCall::take_reusable(bool of_one_client) {
  const bool clean = request_ended_ && head_.status >= 200 && head_.keep_alive &&
                     body_.finished() && body_.framing() != Framing::until_close &&
                     !answered_while_sending() && wire_->unread().empty() && !wire_->cancelled() &&
                     wire_->trouble() == Wire::Trouble::none && (of_one_client || !logs_in_);
  return clean ? std::move(wire_) : nullptr;
}

}  // namespace idem::http
