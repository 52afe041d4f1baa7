#pragma once

#include "cli/commands/operator_command.hpp"

#include <string>

namespace idem::cli {

/// `idem shadow report`: what enforcement would have done on routes with `enforce: shadow`, through
/// the admin API.
class ShadowCommand : public OperatorCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit ShadowCommand(const Command& program);

  /// The exit code. 4: there is no such route.
  int run();

 private:
  std::string route_;
};

}  // namespace idem::cli
