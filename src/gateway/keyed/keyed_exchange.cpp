#include "gateway/keyed/keyed_exchange.hpp"

#include "core/exchange/preferences.hpp"
#include "gateway/keyed/async_request.hpp"
#include "gateway/keyed/exchange_rules.hpp"

namespace idem::gateway {
namespace {

WaitRule wait_of(const http::RequestHead& head, const Route& route) {
  PreferredWait preferred;
  for (const auto& field : head.fields) {
    if (http::same_name(field.name, "Prefer")) preferred.read(field.value);
  }
  const Millis by_itself = route.mode == Mode::wait ? route.wait_max : Millis{0};
  return wait_rule(by_itself, route.wait_max, preferred.value());
}

ExchangeSettings exchange_settings(const http::RequestHead& head, const Route& route, bool async,
                                   Millis look_again) {
  const WaitRule wait = wait_of(head, route);
  ExchangeSettings rules = exchange_rules(route, route.lease);
  rules.wait = wait.time;
  rules.wait_applied = wait.applied;
  rules.respond_async = async;
  rules.async_applied = async && route.mode != Mode::async;
  rules.look_again = look_again;
  return rules;
}

}  // namespace

std::shared_ptr<Exchange> make_exchange(const http::RequestHead& head, const RequestParts& request,
                                        Reserve reserve, const Identity& identity,
                                        const GatewaySettings& settings, const Route& route,
                                        bool async, Millis look_again,
                                        const std::optional<tracing::Outgoing>& trace) {
  auto rules = exchange_settings(head, route, async, look_again);
  if (request.new_key_rejection != nullptr) rules.no_record = to_answer(*request.new_key_rejection);
  if (trace && trace->parent.is_sampled) rules.trace = traceparent_of(trace->parent);
  if (!async) return std::make_shared<Exchange>(rules, std::move(reserve));
  auto stored = request_to_store(head, request, reserve.id, identity, settings, route, trace);
  return std::make_shared<Exchange>(rules, Accept{std::move(reserve), std::move(stored)});
}

}  // namespace idem::gateway
