#include "support/script.hpp"

#include "support/time_spent.hpp"

#include <cstdio>
#include <fstream>

namespace idem::test {

std::string output_of(const std::string& command) {
  // Nearly all of them start, end or ask a server.
  const TimeSpent spent("servers");
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  const int status = ::pclose(pipe);
  while (text.ends_with('\n')) text.pop_back();
  return status == 0 ? text : std::string();
}

std::string first_field_of(const std::string& path) {
  std::string field;
  std::ifstream(path) >> field;
  return field;
}

}  // namespace idem::test
