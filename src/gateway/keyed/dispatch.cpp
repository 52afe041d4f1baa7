#include "gateway/keyed/dispatch.hpp"

#include "gateway/forward.hpp"
#include "gateway/keyed/rpc_answer.hpp"
#include "gateway/passthrough/stream_body.hpp"

#include <idem/assert.hpp>
#include <idem/crash_point.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <utility>

namespace idem::gateway {

using http::BodyReader;
using http::UpstreamCall;

Task<ExchangeEvent> Dispatch::connect() {
  wire_ = upstream_.take_idle();
  pooled_ = wire_ != nullptr;
  if (pooled_) co_return UpstreamReady{};
  auto fresh = co_await upstream_.connect();
  if (!fresh) co_return not_reached(std::move(fresh.error()));
  wire_ = std::move(*fresh);
  co_return UpstreamReady{};
}

Task<ExchangeEvent> Dispatch::send(std::string_view method, std::string_view head,
                                   std::string_view body, MonotonicTime not_after,
                                   const UpstreamCall::InterimSink& on_interim) {
  IDEM_ASSERT(wire_ != nullptr);
  call_.emplace(std::move(wire_));
  broken_ = given_back_ = false;
  is_counted_ = true;
  const MonotonicTime deadline = MonotonicClock::now() + route_.upstream_timeout;
  const auto answered = co_await call_->run(method, head, body, not_after, deadline, on_interim);
  if (answered) {
    auto event = co_await read_answer();
    if (auto* const whole = std::get_if<UpstreamAnswered>(&event)) {
      whole->answers_rpc = route_.jsonrpc && answers_rpc(body, whole->answer);
    }
    co_return event;
  }
  broken_ = true;
  switch (answered.error()) {
    case UpstreamCall::Failure::timeout:
      co_return lost(UpstreamLost::How::timeout, {});
    case UpstreamCall::Failure::closed:
      co_return lost(UpstreamLost::How::closed, {});
    case UpstreamCall::Failure::malformed:
      co_return lost(UpstreamLost::How::malformed, {});
    case UpstreamCall::Failure::nothing_sent:
      break;
  }
  if (!pooled_) {
    observer_.upstream_took_nothing();
    co_return UpstreamNotReached{"The upstream closed before it accepted a byte."};
  }
  pooled_ = false;
  auto fresh = co_await upstream_.connect();
  if (!fresh) co_return not_reached(std::move(fresh.error()));
  wire_ = std::move(*fresh);
  co_return UpstreamReady{};
}

Task<ExchangeEvent> Dispatch::read_answer() {
  UpstreamAnswered answered = end_to_end(call_->head());
  add_date(answered.answer);
  answered.while_sending = call_->answered_early();
  const int status = call_->head().status;
  // The head shows that this answer is a stream or too large to keep: do not wait for its body.
  const bool too_large = call_->head().framing == http::Framing::content_length &&
                         call_->head().content_length > route_.response_body_bytes_max;
  if (too_large || is_stream(call_->head(), call_->body())) {
    // A stream has no end that could be waited for: its head is the answer.
    is_counted_ = is_stream(call_->head(), call_->body());
    if (is_counted_) observer_.upstream_answered();
    co_return UpstreamOversize{std::move(answered)};
  }
  if (call_->head().framing == http::Framing::until_close && !call_->wire().end_is_proven()) {
    // The end of such a body looks like a cut (RFC 9112 §6.3), unless TLS announces it (§9.8).
    co_return lost(UpstreamLost::How::unframed, status);
  }
  for (;;) {
    const auto piece = co_await call_->next_piece();
    if (!piece) {
      broken_ = true;
      const bool timeout = piece.error().trouble == BodyReader::Trouble::timeout;
      co_return lost(timeout ? UpstreamLost::How::timeout : UpstreamLost::How::cut, status);
    }
    crash_point(CrashPoint::response_mid_body);
    body_.append(*piece);
    if (body_.size() > route_.response_body_bytes_max) {
      is_counted_ = call_->body().finished();
      if (is_counted_) observer_.upstream_answered();
      co_return UpstreamOversize{std::move(answered)};
    }
    if (call_->body().finished()) break;
  }
  answered.answer.body = std::move(body_);
  observer_.upstream_answered();
  call_->send_some();
  if (!call_->answered_while_sending()) give_back();
  co_return answered;
}

ExchangeEvent Dispatch::not_reached(http::ConnectFailure failure) {
  observer_.upstream_not_reached(failure);
  return UpstreamNotReached{std::move(failure.why)};
}

ExchangeEvent Dispatch::lost(UpstreamLost::How how, std::optional<int> status) {
  switch (how) {
    case UpstreamLost::How::timeout:
      observer_.upstream_failed(metrics::Forwarded::timeout, "it did not answer within its time");
      break;
    case UpstreamLost::How::closed:
      observer_.upstream_failed(metrics::Forwarded::closed, "it closed before it answered");
      break;
    case UpstreamLost::How::malformed:
      observer_.upstream_failed(metrics::Forwarded::malformed, "its answer was not valid HTTP");
      break;
    case UpstreamLost::How::cut:
      observer_.upstream_failed(metrics::Forwarded::cut, "its answer was cut");
      break;
    case UpstreamLost::How::unframed:
      observer_.upstream_failed(metrics::Forwarded::unframed,
                                "the end of its answer cannot be distinguished from a cut");
      break;
  }
  return UpstreamLost{how, status};
}

void Dispatch::broke_off() {
  broken_ = true;
  if (std::exchange(is_counted_, true)) return;
  observer_.upstream_broke_off(call_->wire().trouble() == http::Wire::Trouble::timeout);
}

void Dispatch::count_rest() {
  if (!std::exchange(is_counted_, true)) observer_.upstream_answered();
}

bool Dispatch::has_rest() const noexcept {
  if (!call_ || broken_ || given_back_) return false;
  return !call_->body().finished() || call_->answered_while_sending();
}

bool Dispatch::is_endless() const noexcept { return is_stream(call_->head(), call_->body()); }

Task<void> Dispatch::read_out(std::function<bool()> is_draining) {
  if (!call_ || broken_ || given_back_) co_return;
  std::string().swap(body_);
  MonotonicTime end = MonotonicClock::now() + limits::unread_answer_max;
  bool drains = false;
  while (!call_->body().finished()) {
    const MonotonicTime now = MonotonicClock::now();
    if (!std::exchange(drains, is_draining()) && drains) {
      end = std::min(end, now + limits::drain_send_max);
    }
    if (now >= end) {
      count_rest();  // It is we who do not wait.
      co_return;
    }
    call_->wire().deadline(std::min(end, now + route_.upstream_timeout));
    const auto piece = co_await call_->next_piece();
    if (!piece) {
      broke_off();
      co_return;
    }
  }
  count_rest();
  call_->wire().write_deadline(MonotonicClock::now() + route_.upstream_timeout);
  co_await call_->finish_sending();
  give_back();
}

void Dispatch::give_back() { given_back_ = upstream_.give_back(*call_); }

}  // namespace idem::gateway
