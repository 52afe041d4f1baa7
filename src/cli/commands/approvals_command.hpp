#pragma once

#include "cli/commands/operator_command.hpp"

#include <optional>
#include <string>

namespace idem::cli {

/// `idem approvals list|show|approve|reject`: orders that wait for another person.
class ApprovalsCommand : public OperatorCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit ApprovalsCommand(const Command& program);

  /// The exit code.
  int run();

 private:
  Command list_;
  Command show_;
  Command approve_;
  Command reject_;
  std::string id_, reason_, cursor_;
  std::optional<std::size_t> limit_;
};

}  // namespace idem::cli
