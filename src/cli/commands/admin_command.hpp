#pragma once

#include "cli/commands/operator_command.hpp"

namespace idem::cli {

/// `idem admin`: tokens of the admin API, through a running gateway or in their file.
class AdminCommand : public OperatorCommand {
 public:
  explicit AdminCommand(const Command& program);

  /// The exit code.
  int run();

 private:
  int make();
  int list();
  int revoke();

  Command make_;
  Command list_;
  Command revoke_;
  std::string name_{};
  std::string role_{};
  std::string reason_{};
  std::string file_{};
};

}  // namespace idem::cli
