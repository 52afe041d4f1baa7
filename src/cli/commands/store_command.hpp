#pragma once

#include "cli/commands/operator_command.hpp"

namespace idem::cli {

/// `idem store rekey`: work on what lies in the store of a running gateway or worker.
class StoreCommand : public OperatorCommand {
 public:
  explicit StoreCommand(CLI::App& app);

  /// The exit code.
  int run();

 private:
  CLI::App* rekey_;
};

}  // namespace idem::cli
