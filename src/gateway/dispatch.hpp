#pragma once

#include "core/exchange.hpp"
#include "gateway/observation.hpp"
#include "gateway/settings.hpp"
#include "http/upstream_call.hpp"

#include <memory>
#include <optional>
#include <string>

namespace idem::gateway {

/// The one sending of a keyed request: a connection, the bytes, and what came of it as an event for
/// the exchange. Loop's thread only.
class Dispatch {
 public:
  /// `observer` counts how it ends.
  Dispatch(http::UpstreamPool& pool, const Route& route, Observer& observer)
      : pool_(pool), route_(route), observer_(observer) {}

  /// Gets a connection: UpstreamReady or UpstreamNotReached.
  Task<ExchangeEvent> connect();

  /// Sends `head` and `body` once. A pooled connection on which the kernel accepted zero bytes is
  /// replaced by a fresh one and reported as UpstreamReady: ask the exchange again before sending.
  Task<ExchangeEvent> send(std::string_view method, std::string_view head, std::string_view body,
                           MonotonicTime not_after,
                           const http::UpstreamCall::InterimSink& on_interim);

  /// After UpstreamOversize: the part of the body that was read already, and the call to read on
  /// from.
  std::string take_begun_body() noexcept { return std::move(body_); }
  http::UpstreamCall& call() noexcept { return *call_; }
  /// The upstream has answered, and not yet taken all of the request.
  bool unsent() const noexcept { return answered_ && call_->answered_while_sending(); }
  /// Sends what it still takes, and gives the connection back where it can be used again.
  Task<void> finish();

 private:
  Task<ExchangeEvent> read_answer();
  ExchangeEvent not_reached(http::ConnectFailure failure);
  ExchangeEvent lost(UpstreamLost::How how, std::optional<int> status);
  void give_back();

  http::UpstreamPool& pool_;
  const Route& route_;
  Observer& observer_;
  std::unique_ptr<http::Wire> wire_;
  bool pooled_ = false;
  std::optional<http::UpstreamCall> call_;
  std::string body_;
  bool answered_ = false;  ///< Whole.
};

}  // namespace idem::gateway
