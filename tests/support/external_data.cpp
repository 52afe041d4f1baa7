#include "support/external_data.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

namespace idem::test {

std::filesystem::path external_data() {
  std::filesystem::path folder;
  if (const char* named = std::getenv("IDEM_EXTERNAL_DATA")) {
    folder = named;
  } else {
    folder = std::filesystem::path(IDEM_SOURCE_DIR) / "../shared/external";
  }
  return std::filesystem::is_directory(folder) ? folder : std::filesystem::path{};
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool required(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace idem::test
