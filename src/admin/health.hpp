#pragma once

#include "http/server.hpp"

#include <idem/store.hpp>

#include <atomic>
#include <memory>

namespace idem::admin {

/// GET /livez: the process serves. GET /readyz: it should be given traffic: not draining, and the
/// store answers. Requests whose Host is not loopback are refused (DNS rebinding).
std::unique_ptr<http::Service> make_health(http::Loop& loop, Store& store,
                                           const std::atomic<bool>& draining);

}  // namespace idem::admin
