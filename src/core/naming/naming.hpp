#pragma once

#include <idem/route_name.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// How records get their names, as far as it may change while a store is open.
struct Naming {
  std::uint64_t generation = 1;
  /// False: the operation is no part of a record's name (`key_scope: tenant`).
  bool by_operation = true;
  std::vector<RouteName> routes{};        ///< As recorded last; none: never.
  std::vector<std::string> key_fields{};  ///< Likewise.
  bool operator==(const Naming&) const = default;
};

/// How a list of names lies in a store: one text, with a separator that no name holds between them.
std::string joined_names(const std::vector<std::string>& names, char separator);
std::vector<std::string> split_names(std::string_view all, char separator);

}  // namespace idem
