#pragma once

#include "support/external_data.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

/// The repository's own files, for tests that read them.
namespace idem::test {

namespace fs = std::filesystem;

inline const fs::path root = IDEM_SOURCE_DIR;

/// The files below a folder whose names end so, in order.
inline std::vector<fs::path> files_below(const fs::path& folder,
                                         const std::vector<std::string>& extensions) {
  std::vector<fs::path> found;
  if (!fs::exists(root / folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension();
    if (std::ranges::find(extensions, extension) != extensions.end()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline std::vector<fs::path> sources(const fs::path& folder) {
  return files_below(folder, {".cpp", ".hpp"});
}

inline std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// UTF-8 continuation bytes take no column.
inline std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace idem::test
