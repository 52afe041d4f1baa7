#include "gateway/passthrough/passthrough.hpp"

#include "gateway/forward.hpp"
#include "gateway/method_override.hpp"
#include "gateway/passthrough/stream_body.hpp"
#include "gateway/passthrough/tunnel.hpp"
#include "gateway/passthrough/upgrade.hpp"
#include "gateway/passthrough/upload.hpp"
#include "gateway/upstream_source.hpp"
#include "http/upstream_call.hpp"

#include <idem/crash_point.hpp>

namespace idem::gateway {
namespace {

using http::Framing;
using http::UpstreamCall;

class Passthrough {
 public:
  Passthrough(http::ServerStream& client, http::UpstreamPool& pool, const GatewaySettings& settings,
              const Route& route, Observer& observer, Onlooker* onlooker)
      : client_(client),
        upstream_(pool, client, settings, route),
        settings_(settings),
        route_(route),
        observer_(observer),
        onlooker_(onlooker) {}

  Task<void> run() {
    build_head();
    auto wire = upstream_.take_idle();
    const bool pooled = wire != nullptr;
    if (!pooled) {
      auto fresh = co_await upstream_.connect();
      if (!fresh) {
        co_await fail_connect(fresh.error());
        co_return;
      }
      wire = std::move(*fresh);
    }
    pooled_ = pooled;
    bool again = co_await over(wire);
    if (!again) co_return;
    pooled_ = false;
    if (pooled) {
      auto fresh = co_await upstream_.connect();
      if (!fresh) {
        co_await fail_connect(fresh.error());
        co_return;
      }
      wire = std::move(*fresh);
      again = co_await over(wire);
    }
    if (!again) co_return;
    observer_.upstream_took_nothing();
    if (onlooker_ != nullptr) onlooker_->not_sent();
    co_await fail(ProblemCode::upstream_failed, closed_detail);
  }

 private:
  static constexpr std::string_view closed_detail =
      "The upstream closed before it answered. The request may have run.";
  static constexpr std::string_view timeout_detail =
      "The upstream did not answer within its time. The request may have run.";
  static constexpr std::string_view broken_detail =
      "The upstream's answer was not valid HTTP. The request may have run.";
  static constexpr std::string_view stopped_detail =
      "The gateway is stopping, and the upstream has a part of the request.";
  static constexpr std::string_view switched_detail =
      "The upstream switched to a protocol that the client had not offered.";

  void build_head() {
    append_forwarded_head(
        out_, client_.head(), settings_,
        route_.in_shadow() ? ForwardedKey::as_it_came : ForwardedKey::by_settings);
    if (ends_with_head(client_.head())) upgrade_ = offered_protocols(client_.head());
    if (!upgrade_.empty()) {
      out_ += "Connection: upgrade\r\nUpgrade: ";
      out_ += upgrade_;
      out_ += "\r\n";
    }
    switch (client_.head().framing) {
      case Framing::content_length:
        append_content_length(out_, client_.head().content_length);
        break;
      case Framing::chunked:
        out_ += "Transfer-Encoding: chunked\r\n";
        break;
      case Framing::none:
      case Framing::until_close:
        break;
    }
    out_ += "\r\n";
  }

  // The upstream may have closed a pooled connection at the moment of our send. Only a request with
  // a safe method (RFC 9110 §9.2.1) and without a body is then sent once more (§9.2.2). One that
  // asks for another method may run as that.
  bool may_ask_again(UpstreamCall::Failure failure) const {
    const auto& head = client_.head();
    const bool safe = head.method == "GET" || head.method == "HEAD" || head.method == "OPTIONS";
    return pooled_ && safe && head.framing == Framing::none &&
           failure == UpstreamCall::Failure::closed && !override_of(head).asked();
  }

  // True: try another connection, because no byte was sent or the request can change nothing.
  Task<bool> over(std::unique_ptr<http::Wire>& wire) {
    UpstreamCall call(std::move(wire));
    if (!upgrade_.empty()) call.allow_switch();
    call.wire().deadline(MonotonicClock::now() + route_.upstream_timeout);
    Upload upload(client_, call, route_.upstream_timeout, onlooker_);
    auto going = co_await send_begin(call, upload);
    if (going && !call.answered_while_sending()) call.wire().no_write_deadline();
    if (going && !client_.body_finished()) {
      const bool invited = co_await client_.invite_body();
      if (!invited) co_return false;
      upload.start();
    }
    if (going) {
      auto on_interim = [this](const http::ResponseHead& head) { return pass_interim(head); };
      const UpstreamCall::InterimSink sink(on_interim);
      going = co_await call.read_head(client_.head().method, sink);
    }
    if (going) {
      if (call.head().status == 101) {
        observer_.upstream_answered();
        co_await switch_protocols(call);
      } else {
        co_await pass_answer(call, upload);
      }
      co_return false;
    }
    if (upload.started()) {
      co_await upload.stop();
    } else {
      if (going.error() == UpstreamCall::Failure::nothing_sent) co_return true;
      if (may_ask_again(going.error()) && call.wire().unread().empty()) co_return true;
    }
    if (upload.refused() && upload.refused()->stopping) {
      // The upstream has a part of the body, so the answer must not say "nothing was run".
      client_.close_after();
      co_await fail(ProblemCode::draining, stopped_detail);
    } else if (upload.refused()) {
      co_await client_.refuse(*upload.refused());
    } else {
      note_failure(going.error());
      co_await fail_call(going.error());
    }
    co_return false;
  }

  // The head, in one write with a body that has come already.
  Task<std::expected<void, UpstreamCall::Failure>> send_begin(UpstreamCall& call, Upload& upload) {
    std::string_view body;
    if (!client_.body_finished() && client_.body_is_here()) {
      const auto piece = co_await client_.next_piece();
      if (piece) first_piece_ = *piece;
      if (piece && onlooker_ != nullptr) onlooker_->request_piece(*piece);
    }
    if (!first_piece_.empty()) body = upload.framed(first_piece_);
    if (client_.body_finished()) call.end_of_request();
    crash_point(CrashPoint::dispatch_before_first_byte);
    const auto sent = co_await call.send(out_, body);
    if (onlooker_ != nullptr && client_.body_finished()) onlooker_->request_whole();
    co_return sent;
  }

  Task<void> pass_answer(UpstreamCall& call, Upload& upload) {
    upload.answered();
    if (!call.wants_rest() && !client_.body_finished()) {
      upload.wind_up();
      client_.close_after();
    }
    if (!upload.started()) call.wire().no_write_deadline();
    UpstreamAnswered answered = end_to_end(call.head());
    if (onlooker_ != nullptr) {
      if (client_.body_finished()) onlooker_->request_whole();  // Its sender may not run yet.
      onlooker_->answered({.head = call.head(),
                           .what = answered,
                           .while_sending = call.answered_early() || !client_.body_finished(),
                           .is_stream = is_stream(call.head(), call.body()),
                           .end_is_proven = call.wire().end_is_proven()});
    }
    WireAnswer head = std::move(answered.answer);
    keep_described_length(head, call.head());
    const http::ServerStream::StreamFraming framing{call.head().framing,
                                                    call.head().content_length};
    const auto piece = call.body().next_if_here(call.wire());
    if (piece) {
      const http::ServerStream::StreamStart start{*piece, call.body().finished()};
      if (onlooker_ != nullptr) onlooker_->answer_piece(piece->size(), start.whole);
      // A stream has no end that could be waited for: its head is the answer.
      const bool endless = !start.whole && is_stream(call.head(), call.body());
      if (endless) observer_.upstream_answered();
      const bool begun = co_await client_.begin_stream(head, framing, start);
      StreamEnd end = begun ? StreamEnd::whole : StreamEnd::client_left;
      if (begun && !start.whole) {
        end = co_await stream_body(client_, call, route_.upstream_timeout, onlooker_);
      }
      // Its own client may have caused the end: that is no failure of the upstream.
      if (!endless) note_end(call, upload.broke_off() ? StreamEnd::client_left : end);
    }
    if (upload.started()) {
      if (!piece || client_.aborted() || !call.wants_rest()) {
        co_await upload.stop();
      } else {
        co_await upload.finish();
      }
    } else {
      call.wire().write_deadline(MonotonicClock::now() + route_.upstream_timeout);
      co_await call.finish_sending();
    }
    if (!piece) {
      note_failure(UpstreamCall::Failure::malformed);
      co_await fail_call(UpstreamCall::Failure::malformed);
    }
    upstream_.give_back(call);
  }

  Task<void> switch_protocols(UpstreamCall& call) {
    const auto protocols = switched_to(call.head(), upgrade_);
    if (!protocols) {
      co_await fail(ProblemCode::upstream_failed, switched_detail);
      co_return;
    }
    const WireAnswer head = std::move(end_to_end(call.head()).answer);
    const bool sent = co_await client_.switch_protocols(head, *protocols);
    if (sent) co_await run_tunnel(client_, call.wire(), settings_.tunnel_idle);
  }

  // HEAD and 304 describe a body that does not follow: its length is the upstream's.
  void keep_described_length(WireAnswer& head, const http::ResponseHead& upstream) const {
    if (upstream.framing != Framing::none) return;
    if (client_.head().method != "HEAD" && upstream.status != 304) return;
    for (const auto& field : upstream.fields) {
      if (field.known != http::FieldName::content_length) continue;
      head.headers.push_back({"Content-Length", std::string(field.value)});
    }
  }

  Task<void> pass_interim(const http::ResponseHead& head) {
    const UpstreamAnswered interim = end_to_end(head);
    co_await client_.interim(interim.answer);
  }

  Task<void> fail_connect(const http::ConnectFailure& failure) {
    observer_.upstream_not_reached(failure);
    if (onlooker_ != nullptr) onlooker_->not_sent();
    co_await fail(ProblemCode::upstream_failed, failure.why);
  }

  void note_failure(UpstreamCall::Failure failure) {
    if (onlooker_ != nullptr) onlooker_->lost(loss_of(failure));
    switch (failure) {
      case UpstreamCall::Failure::timeout:
        observer_.upstream_failed(metrics::Forwarded::timeout, timeout_detail);
        break;
      case UpstreamCall::Failure::malformed:
        observer_.upstream_failed(metrics::Forwarded::malformed, broken_detail);
        break;
      case UpstreamCall::Failure::closed:
      case UpstreamCall::Failure::nothing_sent:
        observer_.upstream_failed(metrics::Forwarded::closed, closed_detail);
        break;
    }
  }

  static Onlooker::Loss loss_of(UpstreamCall::Failure failure) noexcept {
    switch (failure) {
      case UpstreamCall::Failure::timeout:
        return Onlooker::Loss::timeout;
      case UpstreamCall::Failure::malformed:
        return Onlooker::Loss::malformed;
      case UpstreamCall::Failure::closed:
      case UpstreamCall::Failure::nothing_sent:
        break;
    }
    return Onlooker::Loss::closed;
  }

  // Only now is the answer known to be one: the client of one that breaks off has none.
  void note_end(UpstreamCall& call, StreamEnd end) {
    if (end != StreamEnd::broken) {
      observer_.upstream_answered();
    } else {
      observer_.upstream_broke_off(call.wire().trouble() == http::Wire::Trouble::timeout);
    }
  }

  Task<void> fail_call(UpstreamCall::Failure failure) {
    const bool timeout = failure == UpstreamCall::Failure::timeout;
    const bool malformed = failure == UpstreamCall::Failure::malformed;
    const auto code = timeout ? ProblemCode::upstream_timeout : ProblemCode::upstream_failed;
    const auto detail = timeout ? timeout_detail : malformed ? broken_detail : closed_detail;
    co_await fail(code, detail);
  }

  Task<void> fail(ProblemCode code, std::string_view detail) {
    const WireAnswer problem = to_answer({.code = code, .detail = std::string(detail)});
    co_await client_.answer(problem);
  }

  http::ServerStream& client_;
  UpstreamSource upstream_;
  const GatewaySettings& settings_;
  const Route& route_;
  Observer& observer_;
  Onlooker* const onlooker_;
  bool pooled_ = false;
  std::string upgrade_;  ///< The protocols offered to the upstream; usually none.
  std::string out_;
  /// All of a body that came with its head; kept, because a second connection has to send it again.
  std::string_view first_piece_;
};

}  // namespace

Task<void> pass_through(http::ServerStream& client, http::UpstreamPool& pool,
                        const GatewaySettings& settings, const Route& route, Observer& observer,
                        Onlooker* onlooker) {
  Passthrough relay(client, pool, settings, route, observer, onlooker);
  co_await relay.run();
}

}  // namespace idem::gateway
