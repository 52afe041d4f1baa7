#pragma once

#include "core/key_time.hpp"
#include "core/problem.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"

namespace idem::gateway {

/// The field beside a key that says when its request was sent first (OASIS Repeatable Requests
/// 1.0).
inline constexpr std::string_view first_sent_field = "Repeatability-First-Sent";

/// Why this key, by the times that it and its request name, may begin no record; none: it may. A
/// record that exists is not its business: whoever has one is answered from that.
std::optional<Problem> refused_by_age(const http::RequestHead& head,
                                      const GatewaySettings& settings, const Route& route,
                                      std::string_view key, ClientTime now);

}  // namespace idem::gateway
