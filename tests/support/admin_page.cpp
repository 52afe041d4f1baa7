#include "support/admin_page.hpp"

#include <fstream>
#include <regex>

namespace idem::test {

std::vector<AdminOperation> admin_operations() {
  std::ifstream file(std::string(IDEM_SOURCE_DIR) + "/docs/openapi.yaml");
  std::vector<AdminOperation> all;
  AdminOperation one;
  const std::regex path("  (/.*):");
  const std::regex method("    (get|post):");
  const std::regex role("      x-role: (.*)");
  for (std::string line; std::getline(file, line) && line != "components:";) {
    std::smatch found;
    if (std::regex_match(line, found, path)) one.path = found[1];
    if (std::regex_match(line, found, method)) {
      one.method = found[1] == "get" ? "GET" : "POST";
      one.is_open = false;
    }
    if (line.starts_with("      security: [{}")) one.is_open = true;
    if (!std::regex_match(line, found, role)) continue;
    one.role = found[1];
    all.push_back(one);
  }
  return all;
}

}  // namespace idem::test
