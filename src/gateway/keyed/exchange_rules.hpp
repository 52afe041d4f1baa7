#pragma once

#include "core/exchange/exchange.hpp"
#include "gateway/settings.hpp"

namespace idem::gateway {

/// What an exchange needs of its route, whether a client's request drives it or a stored one. What
/// only one of them knows, the caller adds. `route` must outlive the result's use.
ExchangeSettings exchange_rules(const Route& route, Millis lease);

}  // namespace idem::gateway
