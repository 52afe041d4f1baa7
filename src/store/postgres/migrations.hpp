#pragma once

#include "store/migration.hpp"

#include <span>

namespace idem::postgres {

/// The files of schema/postgres/tables.
std::span<const Migration> migrations() noexcept;

struct FunctionFile {
  std::string_view name;
  std::string_view sql;
};

/// All functions of the schema as this program needs them, in schema/postgres/functions.
struct FunctionSet {
  std::span<const FunctionFile> files;  ///< In the order in which they are applied.
  std::string_view checksum;            ///< Of all files; tells two sets apart.
  std::string_view program;             ///< The version of the program, "1.2.3".
};
FunctionSet function_set() noexcept;

}  // namespace idem::postgres
