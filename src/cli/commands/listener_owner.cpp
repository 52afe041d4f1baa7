#include "cli/commands/listener_owner.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace idem::cli {
namespace {

/// One table of sockets; its first line has the names of the columns.
void add_listeners(const char* table, unsigned long port, std::set<std::uint32_t>& owners) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream columns(line);
    std::string skipped;
    std::string local;
    std::string state;
    std::uint32_t owner = 0;
    // Number, local and remote address, state, queues, timer, retransmits, user.
    columns >> skipped >> local >> skipped >> state >> skipped >> skipped >> skipped >> owner;
    const auto colon = local.rfind(':');
    if (!columns || colon == std::string::npos || state != "0A") continue;
    if (std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port) owners.insert(owner);
  }
}

}  // namespace

std::set<std::uint32_t> listeners_on(const std::string& port) {
  std::set<std::uint32_t> owners;
  const unsigned long number = std::strtoul(port.c_str(), nullptr, 10);
  for (const auto* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    add_listeners(table, number, owners);
  }
  return owners;
}

}  // namespace idem::cli
