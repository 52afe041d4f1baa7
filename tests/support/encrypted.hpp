#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace idem::test {

/// A file of key material in `folder`, made if it is missing.
inline std::string secret_file(const std::filesystem::path& folder, const std::string& name) {
  const auto path = folder / name;
  if (!std::filesystem::exists(path)) {
    std::ofstream(path) << name << "-key-material-of-more-than-thirty-two-bytes\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  }
  return path.string();
}

}  // namespace idem::test
