#pragma once

#include "cli/commands/operator_command.hpp"

#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// `idem audit list|export|verify`: the decisions of operators and the changes of settings, through
/// the admin API or from an exported file.
class AuditCommand : public OperatorCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit AuditCommand(const Command& program);
  /// The exit code.
  int run();

 private:
  int list();
  int save();
  void print_exported(std::uint64_t lines) const;
  int verify();
  int verify_file();

  Command list_;
  Command export_;
  Command verify_;
  std::string who_, what_, ref_, expected_, to_, from_;
  std::vector<std::string> secret_files_;
  std::optional<std::uint64_t> after_;
  std::optional<std::size_t> limit_;
};

}  // namespace idem::cli
