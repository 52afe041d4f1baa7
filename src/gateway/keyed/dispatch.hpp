#pragma once

#include "core/exchange/exchange.hpp"
#include "gateway/observation.hpp"
#include "gateway/settings.hpp"
#include "gateway/upstream_source.hpp"
#include "http/upstream_call.hpp"

#include <memory>
#include <optional>
#include <string>

namespace idem::gateway {

/// The one sending of a keyed request: a connection, the bytes, and the result as an event for the
/// exchange. Loop's thread only.
class Dispatch {
 public:
  /// `observer` counts how it ends.
  Dispatch(UpstreamSource upstream, const Route& route, Observer& observer)
      : upstream_(upstream), route_(route), observer_(observer) {}

  /// Gets a connection: UpstreamReady or UpstreamNotReached.
  Task<ExchangeEvent> connect();

  /// Sends `head` and `body` once. A pooled connection on which the kernel accepted zero bytes is
  /// replaced by a fresh one and reported as UpstreamReady: ask the exchange again before sending.
  Task<ExchangeEvent> send(std::string_view method, std::string_view head, std::string_view body,
                           MonotonicTime not_after,
                           const http::UpstreamCall::InterimSink& on_interim);

  /// After UpstreamOversize: the part of the body that was read already, and the call that reads
  /// the rest.
  std::string take_begun_body() noexcept { return std::move(body_); }
  http::UpstreamCall& call() noexcept { return *call_; }
  /// The upstream has answered, and the request is not all sent or the answer not all read.
  bool has_rest() const noexcept;
  /// After UpstreamOversize: the caller has read the answer up to where it broke off.
  void broke_off();
  /// The end of the answer has not come yet.
  bool is_unread() const noexcept { return has_rest() && !call_->body().finished(); }
  /// The answer is not meant to end (is_stream()). After its head.
  bool is_endless() const noexcept;
  /// Sends the rest of the request where the upstream accepts it, reads its answer to the end and
  /// drops that: a connection that closes before makes many servers cancel the work. Each piece may
  /// take the upstream's timeout, all of them limits::unread_answer_max, or limits::drain_send_max
  /// once `is_draining()`. Then gives the connection back where it can be used again. The bytes
  /// given to send() must still exist.
  Task<void> read_out(std::function<bool()> is_draining);

 private:
  Task<ExchangeEvent> read_answer();
  ExchangeEvent not_reached(http::ConnectFailure failure);
  ExchangeEvent lost(UpstreamLost::How how, std::optional<int> status);
  void give_back();
  void count_rest();

  UpstreamSource upstream_;
  const Route& route_;
  Observer& observer_;
  std::unique_ptr<http::Wire> wire_;
  bool pooled_ = false;
  std::optional<http::UpstreamCall> call_;
  std::string body_;
  bool broken_ = false;      ///< The connection broke off or was too late: no more can be read.
  bool given_back_ = false;  ///< `call_` has no connection.
  bool is_counted_ = true;   ///< False: how the answer ends is still to be counted.
};

}  // namespace idem::gateway
