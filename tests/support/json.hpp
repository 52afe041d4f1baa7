#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::test {

/// A JSON value as a test reads it; made by Boost.JSON, which stays in one .cpp.
struct Json {
  enum class Kind : std::uint8_t { null, boolean, integer, real, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string string;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;

  // Out of line: clang needs the whole type before it makes these for a pair that holds one.
  Json();
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  /// The member with this name; a null value when there is none.
  const Json& operator[](std::string_view name) const;
  bool has(std::string_view name) const;
};

std::optional<Json> parse_json(std::string_view text);

std::string decode_base64(std::string_view text);

}  // namespace idem::test
