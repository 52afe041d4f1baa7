#pragma once

#include "config/setting.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace idem::cli {

/// "IDEM_LEASE" of "--lease".
std::string variable_of(std::string_view flag);

/// The variables of this process that begin with IDEM_ and that nothing of ours reads, each with
/// what was probably meant: "NAME: sentence". `table` has the settings of all commands.
std::vector<std::string> unknown_variables(const std::vector<config::Setting>& table);

}  // namespace idem::cli
