#pragma once

#include <span>
#include <string_view>

namespace idem {

/// One numbered file of a store's folder in schema/, embedded at build time. Each store's
/// `migrations()` has them in order: 1, 2, ... without gaps.
struct Migration {
  int version;
  std::string_view name;
  std::string_view sql;
};

/// In the sentence about a schema that is older than the program: what upgrades it.
inline constexpr std::string_view needs_migration = "start with --migrate";

struct FunctionFile {
  std::string_view name;
  std::string_view sql;
};

/// All functions of a schema as this program needs them, from the folder `functions` of its folder
/// in schema/. A store with such functions has them as its `function_set()`.
struct FunctionSet {
  std::span<const FunctionFile> files;  ///< In the order in which they are applied.
  std::string_view checksum;            ///< Of all files; tells two sets apart.
  std::string_view program;             ///< The version of the program, "1.2.3".
};

}  // namespace idem
