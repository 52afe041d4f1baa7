#pragma once

#include <idem/route_name.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace idem {

/// How records get their names, as far as it may change while a store is open.
struct Naming {
  std::uint64_t generation = 1;
  /// False: the operation is no part of a record's name (`key_scope: tenant`).
  bool by_operation = true;
  std::vector<RouteName> routes;          ///< As recorded last; none: never.
  std::vector<std::string> key_fields{};  ///< Likewise.
};

}  // namespace idem
