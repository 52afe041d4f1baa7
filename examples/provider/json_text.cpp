#include "json_text.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace provider {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string_view raw_member(std::string_view body, std::string_view name) {
  auto at = body.find(fmt::format("\"{}\"", name));
  if (at == body.npos) return {};
  at = body.find_first_not_of(": \t\r\n", at + name.size() + 2);
  if (at == body.npos) return {};
  const auto end = body.find_first_of(body[at] == '"' ? "\"" : ",} \r\n", at + 1);
  if (end == body.npos) return {};
  return body.substr(at, end - at + (body[at] == '"' ? 1 : 0));
}

std::string text_member(std::string_view body, std::string_view name) {
  // Most bodies have no such member, and some are large: those are not parsed.
  if (body.find(fmt::format("\"{}\"", name)) == body.npos) return {};
  boost::system::error_code error;
  const auto json = boost::json::parse(body, error);
  if (error || !json.is_object()) return {};
  const auto* value = json.get_object().if_contains(name);
  if (value == nullptr) return {};
  if (const auto* text = value->if_string()) return std::string(*text);
  return value->is_number() ? boost::json::serialize(*value) : std::string{};
}

}  // namespace provider
