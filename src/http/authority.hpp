#pragma once

#include <string_view>

namespace idem::http {

/// True for `uri-host [":" port]` as a Host field and an http(s) URI may have it (RFC 9110 §7.2,
/// §4.2.1): a name, an IPv4 address or an IPv6 literal, never empty and never with user
/// information. Stricter than RFC 3986 in three things: no comma in a name, no IPvFuture, a port up
/// to 65535.
bool is_authority(std::string_view text) noexcept;

}  // namespace idem::http
