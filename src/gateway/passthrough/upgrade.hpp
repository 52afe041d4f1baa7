#pragma once

#include "http/head.hpp"

#include <optional>
#include <string>
#include <string_view>

/// Which Upgrade goes through (RFC 9110 §7.8), and what a 101 may answer to it.
namespace idem::gateway {

/// The protocols that this request offers and that may be passed on, as a list; empty: none.
/// Protocols that carry further requests (h2c, HTTP, TLS) are left out: they would pass by
/// everything that is decided here.
std::string offered_protocols(const http::RequestHead& head);

/// True when the request says that it has no body, so that what follows its head is the tunnel's.
bool ends_with_head(const http::RequestHead& head) noexcept;

/// The protocols that a 101 switches to; none when it names one that was not `offered`.
std::optional<std::string> switched_to(const http::ResponseHead& head, std::string_view offered);

}  // namespace idem::gateway
