#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The door by which Boost.JSON enters: what tokens and key sets say, as plain values.
namespace idem::gateway {

/// The members of one JSON object that are of use here; the others are passed over. An object that
/// RFC 7493 does not allow (a name twice, bad UTF-8) is none, because its readers disagree.
class JsonObject {
 public:
  static std::optional<JsonObject> parse(std::string_view text);
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(JsonObject&&) noexcept;
  ~JsonObject();

  bool has(std::string_view name) const;
  /// Nothing where it is absent or no string.
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
