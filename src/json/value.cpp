#include "json/value.hpp"

#include <idem/json.hpp>
#include <idem/limits.hpp>

#include <boost/json.hpp>

namespace idem::json {
namespace {

Value from(const boost::json::value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return Value();
    case boost::json::kind::bool_:
      return Value(value.get_bool());
    case boost::json::kind::int64:
      return Value(value.get_int64());
    case boost::json::kind::uint64:
      return Value(value.get_uint64());
    case boost::json::kind::double_:
      return Value(value.get_double());
    case boost::json::kind::string: {
      const auto& text = value.get_string();
      return Value(std::string(text.data(), text.size()));
    }
    case boost::json::kind::array: {
      Array items;
      for (const auto& item : value.get_array()) items.push_back(from(item));
      return Value(std::move(items));
    }
    case boost::json::kind::object: {
      Object members;
      for (const auto& member : value.get_object()) {
        const auto name = member.key();
        members.push_back({std::string(name.data(), name.size()), from(member.value())});
      }
      return Value(std::move(members));
    }
  }
  return Value();
}

}  // namespace

Value::Value() = default;
Value::Value(Any any) : is(std::move(any)) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

const Value* Value::find(std::string_view name) const noexcept {
  const auto* members = std::get_if<Object>(&is);
  if (members == nullptr) return nullptr;
  for (const auto& member : *members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

// Boost.JSON keeps the last of two members with one name, so a reader with another rule would see
// another request. Our own strict pass refuses such texts and says where.
std::expected<Value, ParseError> parse(std::string_view text) {
  if (const auto strict = canonicalize(text); !strict) {
    return std::unexpected(ParseError{strict.error().offset, strict.error().what});
  }
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = limits::json_depth_max + 1;
  const auto value = boost::json::parse({text.data(), text.size()}, error, {}, options);
  if (error) return std::unexpected(ParseError{0, "not JSON"});
  return from(value);
}

}  // namespace idem::json
