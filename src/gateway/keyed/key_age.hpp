#pragma once

#include "core/exchange/problem.hpp"
#include "core/key/key_time.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"

namespace idem::gateway {

/// The field beside a key with the time at which its request was sent first (OASIS Repeatable
/// Requests 1.0).
inline constexpr std::string_view first_sent_field = "Repeatability-First-Sent";

/// How old the time in a new key, or beside it, may be. The client's clock may be ahead of ours by
/// limits::key_time_skew, and then an earlier record of that key is gone that much before the time
/// shows it: a short tombstone must not leave a gap in which the key is new again. 0 or less where
/// record and tombstone together are too short to judge any such time.
Millis new_key_age_max(const Route& route) noexcept;

/// Why the times in this key and its request forbid a new record; none: they do not. A key that has
/// a record is answered from that.
std::optional<Problem> refused_by_age(const http::RequestHead& head,
                                      const GatewaySettings& settings, const Route& route,
                                      std::string_view key, ClientTime now);

}  // namespace idem::gateway
