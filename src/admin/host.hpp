#pragma once

#include "http/head.hpp"

#include <span>
#include <string>
#include <string_view>

namespace idem::admin {

/// Whether a browser reports that a page of another origin sent this (Fetch metadata, RFC 6454).
/// Clients that are no browsers send neither field.
bool is_from_elsewhere(const http::RequestHead& head) noexcept;

/// Whether a Host field names this machine's loopback or one of `names`, with any port. A name such
/// as 127.example.org is not loopback: its owner may point it anywhere.
bool is_our_host(std::string_view host, std::span<const std::string> names);

}  // namespace idem::admin
