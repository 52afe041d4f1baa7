#pragma once

#include "cli/commands/operator_command.hpp"

namespace idem::cli {

/// `idem status`: how a running gateway or worker is, for people and for monitoring.
class StatusCommand : public OperatorCommand {
 public:
  /// Declares the command; `app` outlives this.
  explicit StatusCommand(CLI::App& app);

  /// 0: all is well; 1: something is down or needs a person; 3: nobody answers there.
  int run();
};

}  // namespace idem::cli
