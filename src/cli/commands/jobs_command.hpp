#pragma once

#include "cli/commands/bulk_command.hpp"

namespace idem::cli {

/// `idem jobs list|show|results|cancel`: bulk work of operators.
class JobsCommand : public BulkCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit JobsCommand(const Command& program);

  /// The exit code.
  int run();

 private:
  int cancel();

  Command list_;
  Command show_;
  Command results_;
  Command cancel_;
  std::string id_, reason_, cursor_, after_;
  std::optional<std::size_t> limit_;
};

}  // namespace idem::cli
