#pragma once

#include "cli/commands/settings_command.hpp"
#include "cli/settings/settings_source.hpp"

namespace idem::cli {

/// `idem config check|print|schema|docs`: reads settings as a gateway or worker with the same file,
/// flags and variables would. Opens only the file and files of keys and secrets; `check` also looks
/// whether other named files exist (config_check.hpp), and at the store (opening.hpp). `idem config
/// changes|reload` ask a running gateway instead.
class ConfigCommand {
 public:
  explicit ConfigCommand(const Command& program);

  bool parsed() const;
  int run();

 private:
  int run_check() const;
  int run_print() const;

  Command command_;
  Command check_;
  Command print_;
  Command schema_;
  Command docs_;
  std::string role_ = "guessed";
  bool json_ = false;
  bool print_json_ = false;
  bool ask_store_ = false;
  SettingsSource checked_;
  SettingsSource printed_;
  ChangesCommand changes_;
  ReloadCommand reload_;
};

/// The effective settings as a configuration file with the same effect; settings without a value
/// are comments. Contains no password.
std::string print_settings(GatewayFlags flags, Purpose purpose = Purpose::gateway);

/// The same as JSON, which is a configuration file, too; settings without a value are left out.
std::string print_settings_as_json(GatewayFlags flags, Purpose purpose = Purpose::gateway);

/// The page about all settings, for people: docs/configuration.md.
std::string settings_page();

/// JSON Schema (2020-12) of the configuration file.
std::string settings_schema();

}  // namespace idem::cli
