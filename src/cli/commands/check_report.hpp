#pragma once

#include "cli/settings/settings_source.hpp"
#include "json/writer.hpp"

#include <string>
#include <vector>

namespace idem::cli {

/// What `idem config check` finds, as data. Lines are "PLACE: sentence".
struct CheckReport {
  Purpose purpose = Purpose::gateway;
  std::vector<std::string> complaints{};  ///< Empty: the settings are right.
  std::vector<std::string> warnings{};
};

/// A store in a file is looked at; a store's server is asked only if `asks_server`.
CheckReport report_on(const SettingsSource& source, Purpose purpose, bool asks_server);

/// {"ok", "role", "complaints": [{"place","message"}], "warnings": [...]}; a line without a place
/// has "place": null.
void write_report(json::Writer& out, const CheckReport& report);

/// Prints "ok" behind warnings, or every complaint. The exit code.
int print_report(const SettingsSource& source, Purpose purpose, bool asks_server);
/// As `role` says ("guessed", "gateway", "worker").
int print_report_as_json(const SettingsSource& source, const std::string& role, bool asks_server);

}  // namespace idem::cli
