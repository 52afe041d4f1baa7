#pragma once

#include "config/setting.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace idem::cli {

/// The variable of a flag: "IDEM_LEASE" for "--lease".
std::string variable_of(std::string_view flag);

/// Variables of this process that begin with IDEM_ and that no command reads, each with a
/// suggestion: "NAME: sentence". `table` has all settings.
std::vector<std::string> unknown_variables(const std::vector<config::Setting>& table);

/// Those among them that look like a variable of the commands of operators. Such a command shares
/// its environment with others, so it is silent about the rest.
std::vector<std::string> misspelt_operator_variables();

/// Whether a variable gave the value. Commands may share it, so it may be meant for another one.
inline bool is_variable(const config::Place& place) {
  return !place.in_file() && !place.source.starts_with("--");
}

/// "PLACE: sentence" as "PLACE: warning: sentence".
std::string as_warning(std::string_view line);

}  // namespace idem::cli
