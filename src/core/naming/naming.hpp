#pragma once

#include <idem/route_name.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// The part of the naming of records that may change while a store is open.
struct Naming {
  std::uint64_t generation = 1;
  /// False: the operation is no part of a record's name (`key_scope: tenant`).
  bool by_operation = true;
  std::vector<RouteName> routes{};        ///< Recorded last; empty: never recorded.
  std::vector<std::string> key_fields{};  ///< Likewise.
  bool operator==(const Naming&) const = default;
};

/// A list of names as one text in a store, with a separator that no name contains.
std::string joined_names(const std::vector<std::string>& names, char separator);
std::vector<std::string> split_names(std::string_view all, char separator);

}  // namespace idem
