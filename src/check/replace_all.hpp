#pragma once

#include <string>
#include <string_view>

namespace idem::check {

/// Replaces each `from` in `text`, from front to back; what it has put there it reads no more.
inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace idem::check
