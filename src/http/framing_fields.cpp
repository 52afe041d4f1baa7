#include "http/framing_fields.hpp"

#include "http/characters.hpp"
#include "http/head.hpp"

#include <algorithm>

namespace idem::http {

std::optional<std::uint64_t> content_length_of(std::string_view value) noexcept {
  // 18 digits stay below 2^63, and no body is that long.
  if (value.empty() || value.size() > 18) return std::nullopt;
  std::uint64_t length = 0;
  for (const char c : value) {
    if (!is_char(c, char_digit)) return std::nullopt;
    length = length * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return length;
}

Coding coding_of(std::string_view transfer_encoding) noexcept {
  if (same_name(transfer_encoding, "chunked")) return Coding::chunked;
  // RFC 9110 §5.6.1 allows to skip empty members, but only an attacker sends one here.
  std::string_view rest = transfer_encoding;
  bool after_chunked = false;
  while (true) {
    const auto comma = std::min(rest.find(','), rest.size());
    const char* begin = rest.data();
    const char* end = begin + comma;
    begin = skip_blanks(begin, end);
    while (end != begin && is_blank(end[-1])) --end;
    const std::string_view member(begin, end);
    if (after_chunked || !is_token(member)) return Coding::malformed;
    after_chunked = same_name(member, "chunked");
    if (comma == rest.size()) return Coding::unknown;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace idem::http
