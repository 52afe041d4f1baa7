#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// JSON as the admin API and its client, tokens and the store on DynamoDB read it.
namespace idem::json {

struct Member;
struct Value;
using Array = std::vector<Value>;
using Object = std::vector<Member>;  ///< In the order of the text.

/// A number without a fraction and an exponent is an int64 if it fits, above INT64_MAX a uint64 if
/// it fits; all others are the nearest double. `-0` is the int64 0, `-0.0` the double -0.
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

/// Parses one JSON text: accepts those that canonicalize() accepts, in one pass by the same
/// scanner, and refuses the others with its errors. So: RFC 8259 and I-JSON (RFC 7493); refuses a
/// name that occurs twice in an object, invalid UTF-8, lone surrogates, numbers that overflow a
/// double and nesting deeper than limits::json_depth_max.
std::expected<Value, ParseError> parse(std::string_view text);

/// The same with a smaller bound for the nesting.
std::expected<Value, ParseError> parse(std::string_view text, std::size_t depth_max);

}  // namespace idem::json
