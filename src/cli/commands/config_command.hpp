#pragma once

#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// `idem config check|print|schema|docs`: what a gateway, or a worker, with the same file, flags
/// and variables would make of them. Nothing is opened but the file and what says whom to believe;
/// `check` also looks whether what is named is there (config_check.hpp).
class ConfigCommand {
 public:
  explicit ConfigCommand(CLI::App& app);

  bool parsed() const;
  int run() const;

 private:
  CLI::App& command_;
  CLI::App& check_;
  CLI::App& print_;
  CLI::App& schema_;
  CLI::App& docs_;
  std::string role_ = "guessed";
  SettingsSource checked_;
  SettingsSource printed_;
};

/// The effective settings as a configuration file that gives the same again; what is not set stands
/// in it as a comment. No password is in it.
std::string print_settings(GatewayFlags flags, Purpose purpose = Purpose::gateway);

/// The page about all settings, for people: docs/configuration.md.
std::string settings_page();

/// JSON Schema (2020-12) of the configuration file.
std::string settings_schema();

}  // namespace idem::cli
