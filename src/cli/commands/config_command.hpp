#pragma once

#include "cli/commands/settings_command.hpp"
#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// `idem config check|print|schema|docs`: reads settings as a gateway or worker with the same file,
/// flags and variables would. Opens only the file and files of keys and secrets; `check` also looks
/// whether other named files exist (config_check.hpp). `idem config changes|reload` ask a running
/// gateway instead.
class ConfigCommand {
 public:
  explicit ConfigCommand(CLI::App& app);

  bool parsed() const;
  int run();

 private:
  int run_check() const;
  int run_print() const;

  CLI::App& command_;
  CLI::App& check_;
  CLI::App& print_;
  CLI::App& schema_;
  CLI::App& docs_;
  std::string role_ = "guessed";
  bool json_ = false;
  SettingsSource checked_;
  SettingsSource printed_;
  ChangesCommand changes_;
  ReloadCommand reload_;
};

/// What `idem config check` does with these settings: prints "ok" behind warnings, or every
/// complaint. The exit code.
int check_settings(const SettingsSource& source, Purpose purpose);

/// The effective settings as a configuration file with the same effect; settings without a value
/// are comments. Contains no password.
std::string print_settings(GatewayFlags flags, Purpose purpose = Purpose::gateway);

/// The page about all settings, for people: docs/configuration.md.
std::string settings_page();

/// JSON Schema (2020-12) of the configuration file.
std::string settings_schema();

}  // namespace idem::cli
