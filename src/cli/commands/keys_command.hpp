#pragma once

#include "cli/commands/bulk_command.hpp"

#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// `idem keys list|show|resolve|release`: shows and settles records through the admin API, one, or
/// all that match.
class KeysCommand : public BulkCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit KeysCommand(const Command& program);

  /// The exit code.
  int run();

 private:
  struct Filter {
    std::string state, scope, operation, key, find, older_than, newer_than, cursor;
    std::optional<std::size_t> limit;
    bool contested = false;
  };
  struct Answer {
    int status = 0;
    std::vector<std::string> headers;
    std::string body_file;
  };

  void declare_list();
  void declare_filter(const Command& verb);
  void declare_resolve();
  /// Whether the options name one record with its attempt, or all that match. The complaint's code.
  std::optional<int> why_not_one_or_all() const;
  Match match() const;
  std::expected<std::string, int> resolve_order(bool names_fence) const;
  int list();
  int list_oldest();
  std::string list_target() const;
  int show();
  int resolve();
  int release();

  Command list_;
  Command show_;
  Command resolve_;
  Command release_;
  Filter filter_;
  std::string ref_, as_, evidence_, reason_, observed_at_;
  std::uint64_t fence_ = 0;
  bool all_ = false;
  Answer answer_;
};

}  // namespace idem::cli
