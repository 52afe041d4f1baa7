#include "http/server_stream.hpp"

#include "core/exchange/answers.hpp"
#include "core/exchange/policy.hpp"
#include "http/alike.hpp"
#include "http/append.hpp"
#include "loop/asio.hpp"

#include <idem/crash_point.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem::http {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view continue_head = "HTTP/1.1 100 Continue\r\n\r\n";
// The rest of a refused request is read and dropped up to here, so that the connection can be kept.
constexpr std::uint64_t discard_bytes_max = 64UL * 1024;
constexpr std::string_view stopping_detail =
    "the gateway is stopping, and the request was not complete; nothing was run";
// An upstream waits meanwhile, and a lease runs.
constexpr Millis interim_time_max = 5s;

// A client that has just connected sends its request at once. A drain that begins between the two
// waits for it so long, because the client sees no reason why it should be refused.
constexpr Millis first_bytes_time = 250ms;

// RFC 9110 §9.2.1.
bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
}

// Valid until the thread's next call.
std::string_view content_length_field(std::uint64_t bytes) {
  thread_local std::string text;
  text = "Content-Length: ";
  append_number(text, bytes);
  text += "\r\n";
  return text;
}

// RFC 9110 §6.6.1: an origin with a clock sends Date. Written once a second per thread.
std::string_view date_field() {
  thread_local std::string text;
  thread_local std::int64_t second = 0;
  const auto now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  const auto current = now.time_since_epoch() / 1s;
  if (current != second) {
    second = current;
    text = "Date: " + imf_fixdate(now) + "\r\n";
  }
  return text;
}

}  // namespace

ServerStream::ServerStream(Loop& loop, Socket socket, const Options& options)
    : loop_(loop), wire_(loop, std::move(socket)), options_(options) {
  boost::system::error_code gone;
  const auto peer = wire_.socket().remote_endpoint(gone);
  if (!gone) peer_address_ = peer_address_of(peer.address());
}

void ServerStream::drop_field(std::string_view name) {
  std::erase_if(head_.fields, [&](const FieldView& field) { return alike(field.name, name); });
}

Task<bool> ServerStream::secure(const TlsContext& context) {
  const MonotonicTime end = MonotonicClock::now() + options_.head_time;
  receive_by(end);
  send_by(end);
  auto session = TlsSession::accept(context, wire_.descriptor());
  const bool secured = co_await wire_.secure(std::move(session));
  receive_by(MonotonicTime::max());
  send_by(MonotonicTime::max());
  if (secured) {
    peer_identity_ = wire_.tls()->peer_identity();
    peer_holder_ = wire_.tls()->peer_holder();
  }
  co_return secured;
}

Task<bool> ServerStream::wait_for_head() {
  for (;;) {
    const auto parsed = parse_request_head(wire_.unread(), scanned_, head_);
    if (!parsed) {
      head_ = RequestHead{};
      head_.keep_alive = false;
      // Even a refusal has no body where the method allows none (P19).
      if (wire_.unread().starts_with("HEAD ")) head_.method = "HEAD";
      keep_alive_ = false;
      body_.begin(Framing::none, 0);
      co_await refuse(parsed.error());
      co_return false;
    }
    if (parsed->has_value()) {
      wire_.consume(**parsed);
      wire_.pin();
      co_return true;
    }
    const bool was_idle = wire_.unread().empty();
    idle_ = was_idle;
    if (was_idle && draining_) {
      if (has_served_) co_return false;
      receive_by(MonotonicClock::now() + first_bytes_time);
    }
    const std::size_t got = co_await wire_.read_some();
    idle_ = false;
    if (got == 0) {
      if (wire_.trouble() == Wire::Trouble::timeout && !wire_.unread().empty()) {
        keep_alive_ = false;
        co_await refuse({408, "the request head did not arrive in time"});
      }
      co_return false;
    }
    // From the first byte on one timer covers the whole head, however slowly it drips (P26).
    if (was_idle) receive_by(MonotonicClock::now() + options_.head_time);
  }
}

Task<bool> ServerStream::next_request() {
  scanned_ = 0;
  answered_ = false;
  continue_sent_ = false;
  chunked_out_ = false;
  suppress_body_ = false;
  unparked_ = false;
  body_received_ = 0;
  lingers_as_.clear();
  const bool begun = !wire_.unread().empty();
  receive_by(MonotonicClock::now() + (begun ? options_.head_time : options_.idle_time));
  const bool complete = co_await wait_for_head();
  if (!complete) co_return false;
  receive_by(MonotonicTime::max());
  has_served_ = true;
  keep_alive_ = head_.keep_alive;
  body_.begin(head_.framing, head_.content_length);
  body_waited_ = Millis(0);
  crash_point(CrashPoint::parsed);
  co_return true;
}

Task<bool> ServerStream::invite_body() {
  if (!head_.expect_continue || continue_sent_ || body_.is_buffered(wire_)) co_return true;
  continue_sent_ = true;
  wire_.write_deadline(MonotonicClock::now() + options_.body_grace);
  const bool sent = co_await wire_.write(continue_head);
  wire_.no_write_deadline();
  co_return sent;
}

Millis ServerStream::body_allowance() const noexcept {
  return options_.body_grace +
         Millis(static_cast<std::int64_t>(body_received_) * 1000 /
                static_cast<std::int64_t>(limits::body_rate_bytes_per_second_min));
}

Refusal ServerStream::refusal_of(const BodyReader::Failure& failure) const noexcept {
  switch (failure.trouble) {
    case BodyReader::Trouble::malformed:
      return failure.refusal;
    case BodyReader::Trouble::timeout:
      if (draining_) return {503, stopping_detail, true};
      return {408, "the request body did not arrive in time"};
    case BodyReader::Trouble::closed:
      return {0, "the client closed before its request was complete"};
  }
  return {400, "bad body"};
}

Task<std::expected<std::string_view, Refusal>> ServerStream::next_piece() {
  using Piece = std::expected<std::string_view, Refusal>;
  // Only the time of waiting for this client counts, not an upstream's backpressure.
  const MonotonicTime asked = MonotonicClock::now();
  receive_by(asked + body_allowance() - body_waited_);
  const bool may_go_on = co_await invite_body();
  if (!may_go_on) co_return Piece(std::unexpected(Refusal{0, "the client went away"}));
  const auto piece = co_await body_.next(wire_);
  receive_by(MonotonicTime::max());
  body_waited_ += MonotonicClock::now() - asked;
  if (!piece) {
    keep_alive_ = false;
    co_return Piece(std::unexpected(refusal_of(piece.error())));
  }
  body_received_ += piece->size();
  co_return Piece(*piece);
}

Task<std::expected<ReceivedBody, Refusal>> ServerStream::read_body(std::size_t bytes_max,
                                                                   SpillSpace& spill) {
  using Whole = std::expected<ReceivedBody, Refusal>;
  static constexpr Refusal no_room{503, "the request body could not be kept, so nothing was run"};
  ReceivedBody whole(spill);
  if (head_.framing == Framing::content_length) {
    if (head_.content_length > bytes_max) co_return Whole(std::unexpected(body_too_large));
    whole.expect(head_.content_length);
  }
  while (!body_.finished()) {
    const auto piece = co_await next_piece();
    if (!piece) co_return Whole(std::unexpected(piece.error()));
    if (whole.size() + piece->size() > bytes_max) {
      co_return Whole(std::unexpected(body_too_large));
    }
    if (whole.must_spill(piece->size())) {
      auto spilling = whole.spill(loop_);
      const bool is_kept = co_await spilling;
      if (!is_kept) co_return Whole(std::unexpected(no_room));
    }
    whole.append(*piece);
  }
  if (whole.must_complete()) {
    auto completing = whole.complete(loop_);
    const bool is_kept = co_await completing;
    if (!is_kept) co_return Whole(std::unexpected(no_room));
  }
  co_return Whole(std::move(whole));
}

std::optional<std::string_view> ServerStream::whole_body_here() const noexcept {
  if (body_received_ > 0 || head_.framing == Framing::chunked || !body_is_here()) {
    return std::nullopt;
  }
  return wire_.unread().substr(0, static_cast<std::size_t>(body_.left()));
}

bool ServerStream::body_allowed(int status) const noexcept {
  return head_.method != "HEAD" && status >= 200 && status != 204 && status != 304;
}

void ServerStream::append_head(const WireAnswer& answer, std::string_view framing_field) {
  answered_status_ = answer.status;
  out_.clear();
  out_ += "HTTP/1.1 ";
  append_number(out_, static_cast<std::uint64_t>(answer.status));
  out_ += ' ';
  out_ += reason_phrase(answer.status);
  out_ += "\r\n";
  bool has_date = answer.status < 200;
  for (const auto& field : answer.headers) {
    // §14: no field of the store or the upstream may split the head.
    if (!is_token(field.name) || !is_field_value(field.value)) continue;
    if (equal_names(field.name, "Transfer-Encoding") || equal_names(field.name, "Connection") ||
        (!framing_field.empty() && equal_names(field.name, "Content-Length"))) {
      continue;  // Framing is ours.
    }
    has_date = has_date || equal_names(field.name, "Date");
    append_field(out_, field.name, field.value);
  }
  if (!has_date) out_ += date_field();
  out_ += framing_field;
  if (answer.status >= 200 && !keep_alive_) out_ += "Connection: close\r\n";
  if (answer.status >= 200 && keep_alive_ && head_.minor_version == 0) {
    out_ += "Connection: keep-alive\r\n";
  }
  out_ += "\r\n";
}

Task<bool> ServerStream::answer(const WireAnswer& given) {
  WireAnswer in_form;
  const bool translated = given.problem && error_form_ == ErrorForm::stripe;
  if (translated) in_form = in_stripe_form(given, is_safe(head_.method));
  const WireAnswer& answer = translated ? in_form : given;
  if (draining_ || leaving_) keep_alive_ = false;
  if (!body_.is_buffered(wire_)) {
    const bool small =
        body_.framing() == Framing::content_length && body_.left() <= discard_bytes_max;
    // A client that waits for 100 Continue may never send its body: do not wait for it.
    if (!small || (head_.expect_continue && !continue_sent_)) keep_alive_ = false;
  }
  const bool is_framed = answer.status != 204 && answer.status != 304;
  append_head(answer, is_framed ? content_length_field(answer.body_bytes().size()) : "");
  answered_ = true;
  const std::string_view body =
      body_allowed(answer.status) ? answer.body_bytes() : std::string_view{};
  crash_point(CrashPoint::answer_before_first_byte);
  send_piece_by(options_.write_time);
  if (crash_point_armed(CrashPoint::answer_mid)) {
    co_await wire_.write(std::string_view(out_).substr(0, out_.size() / 2));
    crash_point(CrashPoint::answer_mid);
    const bool rest = co_await wire_.write(std::string_view(out_).substr(out_.size() / 2), body);
    co_return rest;
  }
  const bool sent = co_await write_slowly(out_, body);
  if (!sent) abort_stream();  // The client will not read what the kernel still holds.
  co_return sent;
}

// The deadline moves with each slice taken: a slow reader is served, one that has stopped is not.
Task<bool> ServerStream::write_slowly(std::string_view head, std::string_view body) {
  std::string_view slice = body.substr(0, limits::write_slice_bytes);
  bool sent = co_await wire_.write(head, slice);
  while (sent && slice.size() < body.size()) {
    body.remove_prefix(slice.size());
    slice = body.substr(0, limits::write_slice_bytes);
    send_by(MonotonicClock::now() + options_.write_time);
    sent = co_await wire_.write(slice);
  }
  send_by(MonotonicTime::max());
  co_return sent;
}

Task<bool> ServerStream::refuse(const Refusal& refusal) {
  // The framing of the bytes that follow is not known any more (RFC 9112 §6.3).
  keep_alive_ = false;
  if (refusal.status == 0) co_return false;
  const WireAnswer problem = to_answer(problem_of(refusal));
  const bool sent = co_await answer(problem);
  co_return sent;
}

Task<bool> ServerStream::begin_stream(const WireAnswer& head, StreamFraming framing,
                                      StreamStart start) {
  if (draining_ || leaving_) keep_alive_ = false;
  suppress_body_ = !body_allowed(head.status);
  chunked_out_ = false;
  std::string field;
  switch (framing.framing) {
    case Framing::content_length:
      field = content_length_field(framing.content_length);
      break;
    case Framing::chunked:
    case Framing::until_close:
      if (suppress_body_) break;
      if (head_.minor_version == 0) {
        keep_alive_ = false;
      } else {
        chunked_out_ = true;
        field = "Transfer-Encoding: chunked\r\n";
      }
      break;
    case Framing::none:
      break;
  }
  append_head(head, field);
  answered_ = true;
  stream_ended_ = start.whole;
  if (suppress_body_) start.piece = {};
  if (chunked_out_) {
    append_chunk(out_, start.piece);
    if (start.whole) out_ += last_chunk;
    start.piece = {};
  }
  send_piece_by(options_.write_time);
  const bool sent = co_await wire_.write(out_, start.piece);
  send_by(MonotonicTime::max());
  if (!sent) abort_stream();  // See stream_piece().
  co_return sent;
}

Task<bool> ServerStream::stream_piece(std::string_view piece) {
  if (suppress_body_ || piece.empty()) co_return true;
  send_piece_by(options_.write_time);
  bool sent = false;
  if (chunked_out_) {
    out_.clear();
    append_chunk(out_, piece);
    sent = co_await wire_.write(out_);
  } else {
    sent = co_await wire_.write(piece);
  }
  // The upstream may be slow with the next piece, and this client must not pay for that.
  send_by(MonotonicTime::max());
  // A client that reads until the close (HTTP/1.0) would read a proper close as the end.
  if (!sent) abort_stream();
  co_return sent;
}

Task<bool> ServerStream::end_stream() {
  bool sent = true;
  if (chunked_out_ && !stream_ended_) {
    send_piece_by(options_.write_time);
    sent = co_await wire_.write(last_chunk);
  }
  send_by(MonotonicTime::max());
  if (!sent) keep_alive_ = false;
  co_return sent;
}

Task<bool> ServerStream::switch_protocols(const WireAnswer& head, std::string_view protocols) {
  keep_alive_ = false;
  std::string fields = "Connection: upgrade\r\nUpgrade: ";
  fields += protocols;
  fields += "\r\n";
  append_head(head, fields);
  answered_ = true;
  wire_.write_deadline(MonotonicClock::now() + options_.write_time);
  const bool sent = co_await wire_.write(out_);
  wire_.no_write_deadline();
  co_return sent;
}

Task<bool> ServerStream::interim(const WireAnswer& head) {
  if (head_.minor_version == 0) co_return true;
  if (aborted_) co_return false;
  append_head(head, "");
  wire_.write_deadline(MonotonicClock::now() +
                       std::min<Millis>(options_.write_time, interim_time_max));
  const bool sent = co_await wire_.write(out_);
  wire_.no_write_deadline();
  if (!sent) abort_stream();
  co_return sent;
}

Task<bool> ServerStream::park() {
  bool stays = true;
  while (!unparked_ && !draining_ && stays) {
    if (wire_.is_full()) {
      // The buffer is full of the client's next requests; its hanging up is seen once they are
      // served.
      full_.emplace(loop_);
      co_await full_->wait();
      full_.reset();
      break;
    }
    parked_ = true;
    const std::size_t got = co_await wire_.read_some();
    parked_ = false;
    wire_.allow_reads();
    stays = got > 0 || unparked_ || draining_;
  }
  unparked_ = false;
  co_return stays;
}

void ServerStream::unpark() noexcept {
  unparked_ = true;
  if (parked_) wire_.interrupt_reads();
  if (full_) full_->open();
}

Task<bool> ServerStream::finish_request() {
  if (!answered_ || !keep_alive_ || draining_ || aborted_) co_return false;
  std::uint64_t discarded = 0;
  while (!body_.finished()) {
    const auto piece = co_await next_piece();
    if (!piece) co_return false;
    discarded += piece->size();
    if (discarded > discard_bytes_max) co_return false;
  }
  wire_.unpin();
  co_return true;
}

void ServerStream::receive_by(MonotonicTime at) noexcept {
  receive_at_ = at;
  if (at != MonotonicTime::max()) at = std::min(at, receive_until_);
  wire_.read_deadline(at);
}

void ServerStream::send_by(MonotonicTime at) noexcept {
  send_at_ = at;
  if (at != MonotonicTime::max()) at = std::min(at, send_until_);
  wire_.write_deadline(at);
}

void ServerStream::send_piece_by(Millis time) noexcept {
  const MonotonicTime now = MonotonicClock::now();
  if (draining_) send_until_ = now + limits::drain_send_max;
  send_by(now + time);
}

void ServerStream::drain() noexcept {
  draining_ = true;
  const MonotonicTime now = MonotonicClock::now();
  receive_until_ = now + limits::drain_receive_max;
  send_until_ = now + limits::drain_send_max;
  // Where this stream has set no deadline, another user of the wire may have set one.
  if (receive_at_ != MonotonicTime::max()) receive_by(receive_at_);
  if (send_at_ != MonotonicTime::max()) send_by(send_at_);
  unpark();
  // A request that arrives at this very moment is still served.
  if (idle_) wire_.read_deadline(has_served_ ? now : now + first_bytes_time);
  if (linger_until_) {
    linger_until_ = std::min(*linger_until_, now + limits::linger_brief_time);
    wire_.read_deadline(*linger_until_);
  }
  if (cut_at_drain_ == nullptr) return;
  wire_.cancel();
  cut_at_drain_->cancel();
}

}  // namespace idem::http
