#pragma once

#include "cli/commands/operator_command.hpp"

namespace idem::cli {

/// `idem config changes`: what a reload of a running gateway would change, and what that does to
/// records.
class ChangesCommand : public OperatorCommand {
 public:
  /// `config`: the command `idem config`.
  explicit ChangesCommand(const Command& config);
  int run();
};

/// `idem config reload`: asks the gateway to apply it.
class ReloadCommand : public OperatorCommand {
 public:
  explicit ReloadCommand(const Command& config);
  int run();

 private:
  std::string reason_;
};

}  // namespace idem::cli
