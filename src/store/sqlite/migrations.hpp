#pragma once

#include <span>
#include <string_view>

namespace idem::sqlite {

/// One numbered file of schema/sqlite, embedded at build time.
struct Migration {
  int version;
  std::string_view name;
  std::string_view sql;
};

/// In order: 1, 2, ... without gaps.
std::span<const Migration> migrations() noexcept;

}  // namespace idem::sqlite
