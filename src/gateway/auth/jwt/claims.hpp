#pragma once

#include "json/value.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::gateway {

/// The members of one JSON object of a token or a key set. An object that RFC 7493 does not allow
/// (a name twice, bad UTF-8) is refused, because its readers disagree; so is one that nests deeper
/// than limits::jwt_depth_max.
class JsonObject {
 public:
  static std::optional<JsonObject> parse(std::string_view text);

  bool has(std::string_view name) const noexcept { return object_.find(name) != nullptr; }
  /// Nothing where it is absent or not a string.
  std::optional<std::string> text(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  /// A string, or an array of nothing but strings.
  std::optional<std::vector<std::string>> texts(std::string_view name) const;
  /// An array of nothing but objects.
  std::optional<std::vector<JsonObject>> objects(std::string_view name) const;

 private:
  explicit JsonObject(json::Value object) : object_(std::move(object)) {}

  template <class T>
  const T* find(std::string_view name) const noexcept;

  json::Value object_;
};

}  // namespace idem::gateway
