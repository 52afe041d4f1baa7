#pragma once

#include "cli/settings/gateway_flags.hpp"

#include <string>
#include <vector>

namespace idem::cli {

/// A setting that the file has otherwise than the process that runs.
struct SettingChange {
  std::string name;    ///< "defaults.lease", "routes.NAME.retention", or "routes.NAME" itself.
  std::string before;  ///< As YAML, without passwords; empty: not given.
  std::string after;
  bool needs_restart = false;
  std::string records;  ///< A sentence: what it does to records. Empty: nothing.
};

/// All of them, in the order of the table of settings, then route by route. A route is one of
/// before by its name, or by what it matches. An untouched file gives none, also where only the
/// content of a file differs that a setting names.
std::vector<SettingChange> changes_between(GatewayFlags running, GatewayFlags next);

}  // namespace idem::cli
