#pragma once

#include "core/exchange/problem.hpp"
#include "core/key/key_time.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"

namespace idem::gateway {

/// The field beside a key that says when its request was sent first (OASIS Repeatable Requests
/// 1.0).
inline constexpr std::string_view first_sent_field = "Repeatability-First-Sent";

/// How old the time in a new key, or beside it, may be. Who put it there may have been ahead of us
/// by limits::key_time_skew, and then the record that such a key may have had is gone that much
/// before the time says so: a short tombstone must not leave a gap in which the key is new again.
/// 0 or less where record and tombstone together are too short for any such time to be judged by.
Millis new_key_age_max(const Route& route) noexcept;

/// Why this key, by the times that it and its request name, may begin no record; none: it may. A
/// record that exists is not its business: whoever has one is answered from that.
std::optional<Problem> refused_by_age(const http::RequestHead& head,
                                      const GatewaySettings& settings, const Route& route,
                                      std::string_view key, ClientTime now);

}  // namespace idem::gateway
