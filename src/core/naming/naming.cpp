#include "core/naming/naming.hpp"

#include <algorithm>

namespace idem {

std::string joined_names(const std::vector<std::string>& names, char separator) {
  std::string all;
  for (const std::string& name : names) {
    if (!all.empty()) all += separator;
    all += name;
  }
  return all;
}

std::vector<std::string> split_names(std::string_view all, char separator) {
  std::vector<std::string> names;
  while (!all.empty()) {
    const auto end = std::min(all.find(separator), all.size());
    names.emplace_back(all.substr(0, end));
    all.remove_prefix(std::min(end + 1, all.size()));
  }
  return names;
}

}  // namespace idem
