#pragma once

#include <string>

#include "message.hpp"
#include "world.hpp"

namespace provider {

/// Whether a request with this method charges.
bool is_charging(http::verb method);

/// Appends the effect, also of a repeated request. A declining source gets 402 and no effect.
Reply charge(const Request& request, World& world);

/// The answer to a GET: one charge, those with a key or a reference, or the echo.
Reply look_up(const Request& request, const World& world);

}  // namespace provider
