#include "cli/settings/environment.hpp"

#include "config/words.hpp"

#include <algorithm>
#include <cctype>

#include <unistd.h>

namespace idem::cli {
namespace {

constexpr std::string_view prefix = "IDEM_";

/// Variables of other commands, not of settings.
constexpr std::string_view others[] = {"IDEM_CONFIG", "IDEM_ADMIN_URL", "IDEM_OPERATOR",
                                       "IDEM_ADMIN_TOKEN", "IDEM_ADMIN_TOKEN_FILE"};

/// Kubernetes sets such variables for a service named idem.
bool is_of_a_service(std::string_view name) {
  return name.starts_with("IDEM_SERVICE_") || name == "IDEM_PORT" || name.starts_with("IDEM_PORT_");
}

}  // namespace

std::string variable_of(std::string_view flag) {
  std::string name(prefix);
  for (const char c : flag.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::vector<std::string> unknown_variables(const std::vector<config::Setting>& table) {
  std::vector<std::string> known(std::begin(others), std::end(others));
  for (const auto& setting : table) {
    if (!setting.flag.empty()) known.push_back(variable_of(setting.flag));
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  std::vector<std::string> unknown;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text(*one);
    const auto name = text.substr(0, text.find('='));
    if (!name.starts_with(prefix) || is_of_a_service(name)) continue;
    if (std::ranges::find(names, name) != names.end()) continue;
    unknown.push_back(std::string(name) + ": is no variable of this version and has no effect" +
                      config::did_you_mean(name, names));
  }
  std::ranges::sort(unknown);
  return unknown;
}

}  // namespace idem::cli
