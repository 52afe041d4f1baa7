#pragma once

#include "http/head.hpp"

#include <optional>
#include <string>
#include <string_view>

/// Which Upgrade is passed on (RFC 9110 §7.8), and which 101 is.
namespace idem::gateway {

/// The protocols that this request offers and that may be passed on, as a list; empty: none.
/// Protocols that carry further requests (h2c, HTTP, TLS) are left out: those requests would bypass
/// the gateway's decisions.
std::string offered_protocols(const http::RequestHead& head);

/// True when the request has no body, so that the bytes behind its head are the tunnel's.
bool ends_with_head(const http::RequestHead& head) noexcept;

/// The protocols that a 101 switches to; none when it names one that was not `offered`.
std::optional<std::string> switched_to(const http::ResponseHead& head, std::string_view offered);

}  // namespace idem::gateway
