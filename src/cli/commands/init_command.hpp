#pragma once

#include "cli/command_line/command.hpp"
#include "cli/settings/settings_source.hpp"

#include <expected>
#include <string>

namespace idem::cli {

/// `idem init`: writes a first configuration file from flags, variables and, on a terminal,
/// answers; checks it, and prints what to run next. It replaces no file, and writes none if a value
/// is wrong.
class InitCommand {
 public:
  explicit InitCommand(const Command& program);

  bool parsed() const { return command_.parsed(); }
  int run() const;

 private:
  /// All settings of the file, with paths as the file needs them. The error is the exit code.
  std::expected<GatewayFlags, int> settle() const;
  /// Asks for what is missing. `done`, or the exit code.
  int ask_for_missing(GatewayFlags& flags) const;
  int write(const GatewayFlags& flags) const;
  int complain(const std::string& sentence, int code) const;

  Command command_;
  std::string output_ = "idem.yaml";
  SettingsSource settings_;
  bool json_ = false;
};

}  // namespace idem::cli
