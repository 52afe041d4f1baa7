#pragma once

#include "cli/commands/operator_command.hpp"

namespace idem::cli {

/// `idem console`: the address that logs a browser in to the console of a running gateway, once.
class ConsoleCommand : public OperatorCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit ConsoleCommand(const Command& program);

  /// The exit code.
  int run();
};

}  // namespace idem::cli
