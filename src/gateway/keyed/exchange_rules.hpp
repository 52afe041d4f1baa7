#pragma once

#include "core/exchange/exchange.hpp"
#include "gateway/settings.hpp"

namespace idem::gateway {

/// What an exchange needs of its route, whoever drives it: a client's request or a stored one. What
/// only one of them knows, the caller adds. `route` must outlive the result's use.
ExchangeSettings exchange_rules(const Route& route, Millis lease);

}  // namespace idem::gateway
