#include "http/authority.hpp"

#include "http/characters.hpp"

#include <algorithm>

namespace idem::http {
namespace {

bool all_of_class(std::string_view text, std::uint8_t classes) noexcept {
  return std::all_of(text.begin(), text.end(), [=](char c) { return is_char(c, classes); });
}

bool is_port(std::string_view text) noexcept {
  if (text.size() > 5 || !all_of_class(text, char_digit)) return false;
  unsigned port = 0;
  for (const char c : text) port = port * 10 + static_cast<unsigned>(c - '0');
  return port <= 65535;
}

bool is_ipv4(std::string_view text) noexcept {
  for (int part = 0; part < 4; ++part) {
    const std::string_view octet = text.substr(0, text.find('.'));
    if (octet.empty() || octet.size() > 3 || !all_of_class(octet, char_digit)) return false;
    if (octet.size() > 1 && octet[0] == '0') return false;
    if (octet.size() == 3 && octet > "255") return false;
    text.remove_prefix(octet.size());
    if (part == 3) return text.empty();
    if (text.empty()) return false;
    text.remove_prefix(1);
  }
  return false;
}

/// RFC 3986 §3.2.2: eight groups, of which "::" stands for one or more, the last two perhaps as
/// IPv4.
bool is_ipv6(std::string_view text) noexcept {
  bool shortened = false;
  int groups = 0;
  if (text.starts_with("::")) {
    shortened = true;
    text.remove_prefix(2);
  }
  while (!text.empty()) {
    const std::string_view group = text.substr(0, text.find(':'));
    if (group.size() == text.size() && is_ipv4(group)) {
      groups += 2;
      break;
    }
    if (group.empty() || group.size() > 4 || !all_of_class(group, char_hex)) return false;
    if (++groups > 8) return false;
    text.remove_prefix(group.size());
    if (text.empty()) break;
    text.remove_prefix(1);
    if (text.empty()) return false;
    if (text[0] != ':') continue;
    if (shortened) return false;
    shortened = true;
    text.remove_prefix(1);
  }
  return shortened ? groups <= 7 : groups == 8;
}

bool is_reg_name(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_char(text[i], char_reg_name)) continue;
    if (text[i] != '%' || text.size() - i < 3) return false;
    if (!all_of_class(text.substr(i + 1, 2), char_hex)) return false;
    i += 2;
  }
  return !text.empty();
}

}  // namespace

bool is_authority(std::string_view text) noexcept {
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos || !is_ipv6(text.substr(1, close - 1))) return false;
    rest = text.substr(close + 1);
  } else {
    const auto colon = std::min(text.find(':'), text.size());
    if (!is_reg_name(text.substr(0, colon))) return false;
    rest = text.substr(colon);
  }
  return rest.empty() || (rest[0] == ':' && is_port(rest.substr(1)));
}

}  // namespace idem::http
