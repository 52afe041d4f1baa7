#include "cli/command_line/words.hpp"

namespace idem::cli {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

}  // namespace idem::cli
