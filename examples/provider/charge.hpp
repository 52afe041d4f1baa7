#pragma once

#include <string>

#include "message.hpp"
#include "world.hpp"

namespace provider {

/// Whether a request with this method charges.
bool is_charging(http::verb method);

/// Appends the effect, whatever it was asked before; 402 without one for a source that declines.
Reply charge(const Request& request, World& world);

/// What GET finds: one charge, those with a key or a reference, or the echo.
Reply look_up(const Request& request, const World& world);

}  // namespace provider
