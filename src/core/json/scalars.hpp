#pragma once

#include <idem/json.hpp>

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// The place of a value in a JSON document (RFC 6901).
class JsonPointer {
 public:
  /// The error is a sentence that quotes the text.
  static std::expected<JsonPointer, std::string> parse(std::string_view text);

  /// The value's own bytes within `json`, which check_json() has accepted; none if nothing is
  /// there. Reads nothing behind the value.
  std::optional<std::string_view> find(std::string_view json) const;

  /// Its reference tokens, unescaped.
  const std::vector<std::string>& tokens() const noexcept { return tokens_; }

 private:
  std::vector<std::string> tokens_;
};

/// Accepts the texts that canonicalize() accepts, and numbers that it refuses.
std::expected<void, JsonError> check_json(std::string_view text);

/// A string's decoded value, a number's literal as it is written, "true" or "false"; none for null,
/// for an object and for an array. `value` is the bytes of a JSON value that was checked.
std::optional<std::string> scalar_of(std::string_view value);

/// The bytes of each item of a checked JSON array, in order; none: the value is no array.
std::optional<std::vector<std::string_view>> items_of(std::string_view array);

struct JsonMember {
  std::string_view name;  ///< With its quotes, as it is spelled.
  std::string_view value;
};
/// The members of a checked JSON object, in order; none: the value is no object.
std::optional<std::vector<JsonMember>> members_of(std::string_view object);

}  // namespace idem
