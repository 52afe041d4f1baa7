#pragma once

#include "core/exchange/exchange.hpp"

#include <gtest/gtest.h>

/// Feeds an exchange by hand, so that a test reads as a sequence of events and actions.
namespace idem::test {

inline constexpr Millis lease{60'000};
inline constexpr Millis dispatch_timeout{30'000};

inline Reserve some_reserve(bool dispatched = true) {
  Reserve reserve;
  reserve.id.bytes[0] = 7;
  reserve.scope = "tenant";
  reserve.operation = "POST /payments";
  reserve.fingerprints.push_back({1, {}});
  reserve.token.bytes[0] = 9;
  reserve.lease = lease;
  reserve.dispatched = dispatched;
  reserve.retention = Millis{86'400'000};
  return reserve;
}

inline Reserve under(LeasePolicy policy) {
  Reserve reserve = some_reserve();
  reserve.lease_policy = policy;
  return reserve;
}

class ExchangeScript {
 public:
  /// Of a request whose record has this policy.
  explicit ExchangeScript(LeasePolicy policy)
      : exchange_({.dispatch_timeout = dispatch_timeout, .renew_interval = lease / 3},
                  under(policy)) {
    action_ = exchange_.start(now_);
  }
  explicit ExchangeScript(Exchange exchange) : exchange_(std::move(exchange)) {
    action_ = exchange_.start(now_);
  }
  explicit ExchangeScript(bool dispatched_with_reserve = true, Millis wait = {},
                          std::optional<std::chrono::seconds> wait_applied = {})
      : exchange_({.dispatch_timeout = dispatch_timeout,
                   .renew_interval = lease / 3,
                   .wait = wait,
                   .wait_applied = wait_applied},
                  some_reserve(dispatched_with_reserve)) {
    action_ = exchange_.start(now_);
  }

  void advance(Millis by) { now_ += by; }
  void on(ExchangeEvent event) { action_ = exchange_.on(std::move(event), now_); }
  void store_says(StoreReply reply) { on(StoreAnswered{std::move(reply)}); }
  void store_fails(StoreError::Code code) {
    on(StoreAnswered{std::unexpected(StoreError{code, "x"})});
  }

  /// Up to the point at which the request is on the wire.
  void until_sent() {
    store_says(ReserveOutcome(Execute{some_reserve().id, attempt(), ""}));
    on(UpstreamReady{});
  }

  bool owes() const { return exchange_.owes_settlement(); }
  static Attempt attempt() { return {41, some_reserve().token}; }
  static UpstreamAnswered answered(int status, std::vector<Field> headers = {}) {
    UpstreamAnswered event;
    event.answer = {status, std::move(headers), "body"};
    return event;
  }
  static OwnerReply done(State state, std::optional<StoreTime> expires = {}) {
    return {Verdict::done, state, expires};
  }

  template <class Action>
  const Action* as() const {
    return std::get_if<Action>(&action_);
  }
  /// The verb that the store is asked now, or null.
  template <class Verb>
  const Verb* asked() const {
    const auto* ask_action = as<Ask>();
    return ask_action == nullptr ? nullptr : std::get_if<Verb>(&ask_action->call);
  }
  /// Status of the answer given to the client now; 0 when none is given.
  int status() const {
    const auto* answer = as<AnswerClient>();
    return answer == nullptr ? 0 : answer->answer.status;
  }
  bool body_has(std::string_view text) const {
    const auto* answer = as<AnswerClient>();
    return answer != nullptr && answer->answer.body.find(text) != std::string::npos;
  }
  std::string header(std::string_view name) const {
    const auto* answer = as<AnswerClient>();
    if (answer == nullptr) return {};
    for (const auto& field : answer->answer.headers) {
      if (equal_names(field.name, name)) return field.value;
    }
    return {};
  }

  Exchange& exchange() { return exchange_; }
  MonotonicTime now() const { return now_; }

 private:
  MonotonicTime now_{Millis{1'000'000}};
  Exchange exchange_;
  ExchangeAction action_{Done{}};
};

}  // namespace idem::test
