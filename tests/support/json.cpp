#include "support/json.hpp"

#include <boost/json.hpp>

namespace idem::test {
namespace {

Json from(const boost::json::value& value) {
  Json result;
  switch (value.kind()) {
    case boost::json::kind::null:
      break;
    case boost::json::kind::bool_:
      result.kind = Json::Kind::boolean;
      result.boolean = value.get_bool();
      break;
    case boost::json::kind::int64:
      result.kind = Json::Kind::integer;
      result.integer = value.get_int64();
      break;
    case boost::json::kind::uint64:
      // Boost.JSON has it only for what is beyond an int64.
      result.kind = Json::Kind::real;
      result.real = static_cast<double>(value.get_uint64());
      break;
    case boost::json::kind::double_:
      result.kind = Json::Kind::real;
      result.real = value.get_double();
      break;
    case boost::json::kind::string:
      result.kind = Json::Kind::string;
      result.string = value.get_string();
      break;
    case boost::json::kind::array:
      result.kind = Json::Kind::array;
      for (const auto& item : value.get_array()) result.items.push_back(from(item));
      break;
    case boost::json::kind::object:
      result.kind = Json::Kind::object;
      for (const auto& member : value.get_object()) {
        result.members.emplace_back(member.key(), from(member.value()));
      }
      break;
  }
  return result;
}

}  // namespace

Json::Json() = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

const Json& Json::operator[](std::string_view name) const {
  static const Json none;
  for (const auto& [member, value] : members) {
    if (member == name) return value;
  }
  return none;
}

bool Json::has(std::string_view name) const {
  for (const auto& [member, value] : members) {
    if (member == name) return true;
  }
  return false;
}

std::optional<Json> parse_json(std::string_view text) {
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = 128;  // Deeper than the product accepts.
  const auto value = boost::json::parse({text.data(), text.size()}, error, {}, options);
  if (error) return std::nullopt;
  return from(value);
}

std::string decode_base64(std::string_view text) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto digit = alphabet.find(c);
    if (digit == alphabet.npos) break;  // '=' ends it.
    bits = (bits << 6U) | static_cast<unsigned>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU);
  }
  return out;
}

}  // namespace idem::test
