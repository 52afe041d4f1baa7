#include "cli/settings/environment.hpp"

#include "cli/settings/gateway_flags.hpp"
#include "config/words.hpp"
#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <span>

#include <unistd.h>

namespace idem::cli {
namespace {

constexpr std::string_view prefix = "IDEM_";

constexpr std::string_view of_operators[] = {
    "IDEM_ADMIN_URL", "IDEM_OPERATOR",   "IDEM_ADMIN_TOKEN", "IDEM_ADMIN_TOKEN_FILE",
    "IDEM_ADMIN_CA",  "IDEM_ADMIN_CERT", "IDEM_ADMIN_KEY"};

/// Kubernetes sets such variables for a service named idem.
bool is_of_a_service(std::string_view name) {
  return name.starts_with("IDEM_SERVICE_") || name == "IDEM_PORT" || name.starts_with("IDEM_PORT_");
}

/// `likely`: the names to suggest instead.
std::vector<std::string> unknown_among(const std::vector<std::string>& known,
                                       std::span<const std::string_view> likely) {
  std::vector<std::string> unknown;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text(*one);
    const auto name = text.substr(0, text.find('='));
    if (!name.starts_with(prefix) || is_of_a_service(name)) continue;
    if (std::ranges::find(known, name) != known.end()) continue;
    unknown.push_back(std::string(name) + ": is no variable of this version and has no effect" +
                      config::did_you_mean(name, likely));
  }
  std::ranges::sort(unknown);
  return unknown;
}

std::vector<std::string> known_variables(const std::vector<config::Setting>& table) {
  std::vector<std::string> known(std::begin(of_operators), std::end(of_operators));
  known.emplace_back("IDEM_CONFIG");
  for (const auto& setting : table) {
    if (!setting.flag.empty()) known.push_back(variable_of(setting.flag));
  }
  return known;
}

}  // namespace

std::string variable_of(std::string_view flag) {
  std::string name(prefix);
  for (const char c : flag.substr(2)) name += c == '-' ? '_' : upper_letter(c);
  return name;
}

std::vector<std::string> unknown_variables(const std::vector<config::Setting>& table) {
  const auto known = known_variables(table);
  const std::vector<std::string_view> names(known.begin(), known.end());
  return unknown_among(known, names);
}

std::vector<std::string> misspelt_operator_variables() {
  GatewayFlags defaults;
  auto unknown = unknown_among(known_variables(settings_of(defaults)), of_operators);
  std::erase_if(unknown, [](const std::string& line) { return !line.ends_with('?'); });
  return unknown;
}

std::string as_warning(std::string_view line) {
  const auto place = std::min(line.find(": "), line.size());
  return std::string(line.substr(0, place)) + ": warning" + std::string(line.substr(place));
}

}  // namespace idem::cli
