#pragma once

#include <algorithm>
#include <string_view>

/// @file
/// What the adapters to HTTP servers share.
namespace idem::inline v0_1::adapters {

/// Compares field names without regard to case.
inline bool same_name(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// Fields that frame or date one message on one connection: the server sets them anew each time
/// (RFC 9110 §7.6.1, RFC 9112 §6), and never copies them from a stored answer.
inline bool is_framing_field(std::string_view name) noexcept {
  constexpr std::string_view framing[] = {"Connection", "Content-Length",    "Date",
                                          "Keep-Alive", "Proxy-Connection",  "TE",
                                          "Trailer",    "Transfer-Encoding", "Upgrade"};
  return std::ranges::any_of(framing, [&](std::string_view one) { return same_name(name, one); });
}

/// An answer with this status has no content whatever its fields say (RFC 9110 §6.4.1).
inline bool has_no_content(int status) noexcept {
  return status < 200 || status == 204 || status == 304;
}

}  // namespace idem::inline v0_1::adapters
