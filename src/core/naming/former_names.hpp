#pragma once

#include "core/naming/path_pattern.hpp"

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem {

/// "METHOD /path": the operation of a request whose route has no name.
std::string own_operation(std::string_view method, std::string_view path);

/// Its method and path; none: `operation` is a route's name.
std::optional<std::pair<std::string_view, std::string_view>> split_own_operation(
    std::string_view operation) noexcept;

/// RouteName::formerly, parsed.
class FormerNames {
 public:
  /// The error quotes the entry.
  static std::expected<FormerNames, std::string> parse(const std::vector<std::string>& entries);

  /// The operations under which a record of this request may be, in the order of the entries.
  std::vector<std::string> operations(std::string_view method, std::string_view path) const;
  /// The operations that are the same for every request, in that order.
  std::vector<std::string> fixed() const;
  /// True if `name`, which is no "METHOD /path", is an entry.
  bool has_name(std::string_view name) const noexcept;
  /// True if an entry matches a request's own operation.
  bool has_own(std::string_view method, std::string_view path) const noexcept;

 private:
  struct Entry {
    std::string name;  // empty: the operations of `method` and `path`
    std::string method{};
    PathPattern path{};
  };
  std::vector<Entry> entries_;
};

}  // namespace idem
