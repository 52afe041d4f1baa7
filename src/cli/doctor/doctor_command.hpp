#pragma once

#include "cli/command_line/command.hpp"
#include "cli/settings/settings_source.hpp"

#include <string>

namespace idem::cli {

/// `idem doctor`: looks at everything that a gateway or worker with these settings needs, and says
/// of each what is wrong and what to do. It changes nothing.
class DoctorCommand {
 public:
  explicit DoctorCommand(const Command& program);

  bool parsed() const { return command_.parsed(); }
  /// 0: no problem; 1: there is one; 2: the settings are wrong.
  int run() const;

 private:
  Command command_;
  SettingsSource settings_;
  std::string role_ = "guessed";
  bool json_ = false;
};

}  // namespace idem::cli
