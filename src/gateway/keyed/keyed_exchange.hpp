#pragma once

#include "core/exchange/exchange.hpp"
#include "gateway/keyed/request_parts.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"
#include "tracing/trace.hpp"

#include <memory>

namespace idem::gateway {

/// The exchange of one keyed request, of which its first answer of the store decides what happens.
/// With `async` (is_async()) its request is stored, to be run later. `look_again`: when a client
/// should look again at stored work. `trace`: the request's own span, if it is traced.
/// `route` is one of `settings` and outlives the exchange.
std::shared_ptr<Exchange> make_exchange(const http::RequestHead& head, const RequestParts& request,
                                        Reserve reserve, const Identity& identity,
                                        const GatewaySettings& settings, const Route& route,
                                        bool async, Millis look_again,
                                        const std::optional<tracing::Outgoing>& trace);

}  // namespace idem::gateway
