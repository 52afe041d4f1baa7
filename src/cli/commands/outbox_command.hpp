#pragma once

#include "cli/commands/bulk_command.hpp"

#include <optional>
#include <string>

namespace idem::cli {

/// `idem outbox list|show|retry`: shows and hastens messages through the admin API.
class OutboxCommand : public OperatorCommand {
 public:
  /// Declares the command; `app` outlives this.
  explicit OutboxCommand(CLI::App& app);
  /// The exit code.
  int run();

 private:
  CLI::App* list_;
  CLI::App* show_;
  CLI::App* retry_;
  std::string state_, destination_, operation_ref_, cursor_, id_;
  std::optional<std::size_t> limit_;
};

/// `idem dlq list|show|redrive|discard`: shows dead letters and decides about them.
class DlqCommand : public BulkCommand {
 public:
  explicit DlqCommand(CLI::App& app);
  int run();

 private:
  int order(const char* what);
  int order_job(const char* what);

  CLI::App* list_;
  CLI::App* show_;
  CLI::App* redrive_;
  CLI::App* discard_;
  std::string destination_, cursor_, id_, type_, reason_;
  std::optional<std::size_t> limit_;
  std::optional<double> rate_;
  bool all_ = false;
  bool dry_run_ = false;
  bool nothing_there_ = false;
  bool as_job_ = false;
};

}  // namespace idem::cli
