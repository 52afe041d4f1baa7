#pragma once

#include <idem/json.hpp>

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// Where a value lies in a JSON document (RFC 6901).
class JsonPointer {
 public:
  /// The error is a sentence that quotes the text.
  static std::expected<JsonPointer, std::string> parse(std::string_view text);

  /// The value's own bytes within `json`, which is a JSON text without duplicate names; none where
  /// the pointer meets nothing. Touches nothing behind the value.
  std::optional<std::string_view> find(std::string_view json) const;

 private:
  std::vector<std::string> tokens_;
};

/// Whether it is one JSON text that canonicalize() would take, whatever its numbers.
std::expected<void, JsonError> check_json(std::string_view text);

/// A string's decoded value, a number's literal as it stands, "true" or "false"; none for null, for
/// an object and for an array. `value` is the bytes of a JSON value that was checked.
std::optional<std::string> scalar_of(std::string_view value);

/// The bytes of each item of a JSON array that was checked, in order; none: it is no array.
std::optional<std::vector<std::string_view>> items_of(std::string_view array);

}  // namespace idem
