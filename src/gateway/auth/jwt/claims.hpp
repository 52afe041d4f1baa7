#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The only user of Boost.JSON here: the members of tokens and key sets as plain values.
namespace idem::gateway {

/// The members of one JSON object. An object that RFC 7493 does not allow (a name twice, bad UTF-8)
/// is refused, because its readers disagree.
class JsonObject {
 public:
  static std::optional<JsonObject> parse(std::string_view text);
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(JsonObject&&) noexcept;
  ~JsonObject();

  bool has(std::string_view name) const;
  /// Nothing where it is absent or not a string.
  std::optional<std::string> text(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  /// A string, or an array of nothing but strings.
  std::optional<std::vector<std::string>> texts(std::string_view name) const;
  /// An array of nothing but objects.
  std::optional<std::vector<JsonObject>> objects(std::string_view name) const;

 private:
  struct Members;
  explicit JsonObject(std::unique_ptr<Members> members);
  std::unique_ptr<Members> members_;
};

}  // namespace idem::gateway
