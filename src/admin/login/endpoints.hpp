#pragma once

#include "admin/login/role.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace idem::admin {

/// What a request does, and who may send it. docs/openapi.yaml has the same rows.
struct Endpoint {
  std::string_view method;
  std::string_view path;  ///< A segment in braces stands for any one that is not empty.
  Role least = Role::operates;
  bool is_probe = false;  ///< /livez, /readyz or /metrics: LoginSettings::probes decides.
  /// The decision that it makes, as the audit names it; empty: it makes none.
  std::string_view decides{};
  bool is_open = false;  ///< Without a login: it makes one.
};

/// All of them. Rows of one path are neighbours, and a literal segment comes before a braced one.
std::span<const Endpoint> endpoints() noexcept;

struct FoundEndpoint {
  const Endpoint* endpoint = nullptr;  ///< Null: the path is served, with other methods.
  std::string methods{};               ///< The path's, for Allow.
};
/// None: there is no such path.
std::optional<FoundEndpoint> find_endpoint(std::string_view method, std::string_view path);

}  // namespace idem::admin
