#pragma once

#include <algorithm>
#include <string_view>

/// @file
/// What the adapters to HTTP servers share.
namespace idem::inline v0_1::adapters {

/// Field names, upper and lower case alike.
inline bool same_name(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// Fields that frame one message on one connection, or date it: the server's to say anew each time
/// (RFC 9110 §7.6.1, RFC 9112 §6), never copied from an answer that was made before.
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
