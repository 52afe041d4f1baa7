#pragma once

#include "cli/commands/operator_command.hpp"

#include <optional>
#include <string>

namespace idem::cli {

/// `idem approvals list|show|approve|reject`: orders that wait for another person.
class ApprovalsCommand : public OperatorCommand {
 public:
  /// Declares the command; `app` outlives this.
  explicit ApprovalsCommand(CLI::App& app);

  /// The exit code.
  int run();

 private:
  CLI::App* list_;
  CLI::App* show_;
  CLI::App* approve_;
  CLI::App* reject_;
  std::string id_, reason_, cursor_;
  std::optional<std::size_t> limit_;
};

}  // namespace idem::cli
