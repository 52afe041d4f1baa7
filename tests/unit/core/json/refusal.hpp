#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace idem {

/// Why a text of JSON is refused, and where.
using Refusal = std::pair<std::string_view, std::size_t>;

inline std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

}  // namespace idem
