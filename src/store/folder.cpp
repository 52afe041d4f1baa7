#include "store/folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace idem {
namespace {

namespace fs = std::filesystem;

template <class Iterator>
std::vector<fs::path> all_in(const std::string& folder, std::error_code& code) {
  std::vector<fs::path> found;
  code.clear();
  Iterator at(folder, code);
  while (!code && at != Iterator()) {
    found.push_back(at->path());
    at.increment(code);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::vector<std::string> names_in(const std::string& folder, std::error_code& code) {
  std::vector<std::string> names;
  for (const fs::path& path : all_in<fs::directory_iterator>(folder, code)) {
    names.push_back(path.filename().string());
  }
  return names;
}

std::vector<std::string> paths_below(const std::string& folder, std::error_code& code) {
  std::vector<std::string> paths;
  for (const fs::path& path : all_in<fs::recursive_directory_iterator>(folder, code)) {
    paths.push_back(path.string());
  }
  return paths;
}

bool make_durable(const std::string& path) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_synced = opened >= 0 && ::fsync(opened) == 0;
  const int error = errno;
  if (opened >= 0) ::close(opened);
  errno = error;
  return is_synced;
}

}  // namespace idem
