#pragma once

#include "http/head.hpp"

#include <span>
#include <string>
#include <string_view>

namespace idem::admin {

/// Whether a browser says that a page of another origin asks (Fetch metadata, RFC 6454): none has
/// any business here. Other clients send neither field.
bool is_from_elsewhere(const http::RequestHead& head) noexcept;

/// Whether a Host field names this machine's loopback, or one of `names`; its port does not count.
/// A name such as 127.example.org, which anybody may point anywhere, is not loopback.
bool is_our_host(std::string_view host, std::span<const std::string> names);

}  // namespace idem::admin
