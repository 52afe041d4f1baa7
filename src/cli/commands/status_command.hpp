#pragma once

#include "cli/commands/operator_command.hpp"

namespace idem::cli {

/// `idem status`: the state of a running gateway or worker, for people and monitoring.
class StatusCommand : public OperatorCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit StatusCommand(const Command& program);

  /// The exit code. 0: all is well; 1: something is down or needs an operator; 3: no answer.
  int run();
};

}  // namespace idem::cli
