#pragma once

#include "cli/commands/bulk_command.hpp"

namespace idem::cli {

/// `idem jobs list|show|results|cancel`: bulk work of operators.
class JobsCommand : public BulkCommand {
 public:
  /// Declares the command; `app` outlives this.
  explicit JobsCommand(CLI::App& app);

  /// The exit code.
  int run();

 private:
  int cancel();

  CLI::App* list_;
  CLI::App* show_;
  CLI::App* results_;
  CLI::App* cancel_;
  std::string id_, reason_, cursor_, after_;
  std::optional<std::size_t> limit_;
};

}  // namespace idem::cli
