#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// JSON as the admin API and its client read and write it.
namespace idem::json {

struct Member;
struct Value;
using Array = std::vector<Value>;
using Object = std::vector<Member>;  ///< In the order of the text.

/// A whole number that fits is an int64; one above INT64_MAX a uint64; all others are double.
struct Value {
  using Any = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string,
                           Array, Object>;
  Any is;

  // Out of line: clang needs a complete Member to define these.
  Value();
  explicit Value(Any any);
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  /// The member's value; nullptr if this is no object or has no such member.
  const Value* find(std::string_view name) const noexcept;
};

struct Member {
  std::string name;
  Value value;
};

struct ParseError {
  std::size_t offset = 0;  ///< In bytes.
  std::string_view what;   ///< Static text.
};

/// Parses one JSON text (RFC 8259) that is also I-JSON (RFC 7493). Refuses a name that occurs twice
/// in an object, invalid UTF-8, lone surrogates and nesting deeper than limits::json_depth_max.
std::expected<Value, ParseError> parse(std::string_view text);

}  // namespace idem::json
