#pragma once

#include <string>
#include <vector>

/// @file
/// How routes name operations.
namespace idem::inline v0_1 {

/// How one route names the operations of the requests that it matches (protocol.md §2). The store
/// records a table of them, in which the first match wins: it decides under which names records are
/// found. A request that no route matches is its own operation, "METHOD /path".
struct RouteName {
  std::vector<std::string> methods{};  ///< Empty: all.
  std::string pattern;                 ///< `/v1/quotes/{id}`, `/v1/{rest...}`
  std::string name{};                  ///< Empty: each METHOD and path is its own operation.
  /// Operations under which older records of these requests may lie: a name, or "METHOD /pattern"
  /// for requests that were their own operation.
  std::vector<std::string> formerly{};
  bool operator==(const RouteName&) const = default;
};

}  // namespace idem::inline v0_1
