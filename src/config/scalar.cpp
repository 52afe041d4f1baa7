#include "config/yaml.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/json_string.hpp"

#include <algorithm>
#include <array>

namespace idem::config {
namespace {

bool is_among(std::string_view text, std::string_view words) {
  const std::string lower = lower_case(text);
  for (std::size_t at = 0; at < words.size();) {
    const auto end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == lower) return true;
    at = end + 1;
  }
  return false;
}

bool is_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (is_among(text, ".inf .nan")) return true;
  if (text.empty() || !(is_digit(text[0]) || text[0] == '.')) return false;
  const bool plain = std::ranges::all_of(
      text, [](char c) { return is_digit(c) || c == '.' || c == '_' || c == ':'; });
  const bool dots = std::ranges::count(text, '.') <= 1;
  if (plain) return dots && std::ranges::any_of(text, is_digit);
  const auto is_all = [&](std::string_view digits) {
    return text.size() > 2 && text.find_first_not_of(digits, 2) == std::string_view::npos;
  };
  if (text.starts_with("0x") && is_all("0123456789abcdefABCDEF_")) return true;
  if (text.starts_with("0o") && is_all("01234567_")) return true;
  if (text.starts_with("0b") && is_all("01_")) return true;
  const auto e = text.find_first_of("eE");
  if (e == std::string_view::npos) return false;
  const auto power = text.substr(e + 1);
  return is_number(text.substr(0, e)) && !power.empty() &&
         power.find_first_not_of("+-0123456789") == std::string_view::npos;
}

}  // namespace

Node::Type plain_type(std::string_view text) {
  if (text.empty() || is_among(text, "~ null")) return Node::Type::null;
  if (is_among(text, "true false yes no on off y n")) return Node::Type::truth;
  return is_number(text) ? Node::Type::number : Node::Type::text;
}

std::string yaml_text(std::string_view text) {
  // Letters, digits, and characters without a meaning in YAML at any position.
  const bool plain = !text.empty() && plain_type(text) == Node::Type::text && text.front() != '-' &&
                     std::ranges::all_of(text, [](char c) {
                       return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              c == '/' || c == '.' || c == '_' || c == '-' || c == '+';
                     });
  return plain ? std::string(text) : json_string(text);
}

}  // namespace idem::config
