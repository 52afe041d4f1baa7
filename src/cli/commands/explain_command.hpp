#pragma once

#include "cli/commands/operator_command.hpp"

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// `idem explain`: what would become of a request, through the admin API. Nothing runs.
class ExplainCommand : public OperatorCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit ExplainCommand(const Command& program);

  /// The exit code. 0: explained, whatever the outcome.
  int run();

 private:
  std::expected<std::string, std::string> body() const;

  std::string method_, target_, scope_;
  std::vector<std::string> headers_;
  std::optional<std::string> data_;
};

}  // namespace idem::cli
