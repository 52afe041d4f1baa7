#pragma once

#include <span>
#include <string>
#include <string_view>

namespace idem::admin {

/// Whether a Host field names this machine's loopback, or one of `names`; its port does not count.
/// A name such as 127.example.org, which anybody may point anywhere, is not loopback.
bool is_our_host(std::string_view host, std::span<const std::string> names);

}  // namespace idem::admin
