#pragma once

#include "cli/commands/bulk_command.hpp"

#include <optional>
#include <string>

namespace idem::cli {

/// `idem outbox list|show|retry`: shows and hastens messages through the admin API.
class OutboxCommand : public OperatorCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit OutboxCommand(const Command& program);
  /// The exit code.
  int run();

 private:
  Command list_;
  Command show_;
  Command retry_;
  std::string state_, destination_, operation_ref_, cursor_, id_;
  std::optional<std::size_t> limit_;
};

/// `idem dlq list|show|redrive|discard`: shows dead letters and decides about them.
class DlqCommand : public BulkCommand {
 public:
  explicit DlqCommand(const Command& program);
  int run();

 private:
  int order(const char* what);
  int order_job(const char* what);

  Command list_;
  Command show_;
  Command redrive_;
  Command discard_;
  std::string destination_, cursor_, id_, type_, reason_;
  std::optional<std::size_t> limit_;
  std::optional<double> rate_;
  bool all_ = false;
  bool dry_run_ = false;
  bool nothing_there_ = false;
  bool as_job_ = false;
};

}  // namespace idem::cli
