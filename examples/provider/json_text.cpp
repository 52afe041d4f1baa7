#include "json_text.hpp"

#include "json/value.hpp"

#include <idem/json.hpp>

#include <fmt/format.h>

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
  const auto json = idem::json::parse(body);
  const auto* value = json ? json->find(name) : nullptr;
  if (value == nullptr) return {};
  if (const auto* text = std::get_if<std::string>(&value->is)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&value->is)) return std::to_string(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&value->is)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value->is)) return idem::ecmascript_number(*real);
  return {};
}

}  // namespace provider
