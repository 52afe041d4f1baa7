#pragma once

#include "world.hpp"

namespace provider {

/// Serves one connection until it closes. Never throws.
Task serve(Socket socket, World& world);

}  // namespace provider
