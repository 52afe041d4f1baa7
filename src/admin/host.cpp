#include "admin/host.hpp"

#include "http/head.hpp"

#include <algorithm>

namespace idem::admin {
namespace {

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.rfind(':'));
}

/// Four decimal numbers of which the first is 127 (RFC 1122 §3.2.1.3).
bool is_loopback_v4(std::string_view name) {
  int parts = 0;
  for (std::string_view rest = name; parts < 4; ++parts) {
    const auto part = rest.substr(0, rest.find('.'));
    const bool digits = !part.empty() && part.size() <= 3 &&
                        std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || (parts == 0 && part != "127")) return false;
    if (part.size() == rest.size()) return parts == 3;
    rest.remove_prefix(part.size() + 1);
  }
  return false;
}

bool is_origin_of(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) return http::same_name(origin.substr(scheme.size()), host);
  }
  return false;
}

}  // namespace

bool is_from_elsewhere(const http::RequestHead& head) noexcept {
  return std::ranges::any_of(head.fields, [&](const http::FieldView& field) {
    // A browser sends it with each request of the console's that decides.
    if (http::same_name(field.name, "Origin")) return !is_origin_of(field.value, head.host);
    return http::same_name(field.name, "Sec-Fetch-Site") && field.value != "none" &&
           field.value != "same-origin";
  });
}

bool is_our_host(std::string_view host, std::span<const std::string> names) {
  const auto name = without_port(host);
  if (name == "[::1]" || http::same_name(name, "localhost") || is_loopback_v4(name)) return true;
  return std::ranges::any_of(names, [&](const auto& own) { return http::same_name(name, own); });
}

}  // namespace idem::admin
