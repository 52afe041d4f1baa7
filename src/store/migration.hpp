#pragma once

#include <string_view>

namespace idem {

/// One numbered file of a store's folder in schema/, embedded at build time. Each store's
/// `migrations()` has them in order: 1, 2, ... without gaps.
struct Migration {
  int version;
  std::string_view name;
  std::string_view sql;
};

}  // namespace idem
