#pragma once

#include "cli/commands/operator_command.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace idem::cli {

/// A command that can give its order about all records that match, as a job (docs/operations.md).
class BulkCommand : public OperatorCommand {
 protected:
  using OperatorCommand::OperatorCommand;

  /// What a job is about: members of `match` in `POST /v1/jobs`; empty values are left out.
  using Match = std::vector<std::pair<std::string, std::string>>;

  enum class HasRate : bool { no, yes };
  /// Adds the options of a job to a verb, which may have a --rate already.
  void declare_job(const Command& verb, HasRate has_rate = HasRate::no);
  /// Whether an option was given that only a job has.
  bool has_job_options() const { return expect_ || rate_ || detach_; }
  /// Counts, asks the person or compares with --expect, begins the job and follows it. `order` is a
  /// JSON object; `rate`: the verb's own. The exit code.
  int run_job(const std::string& what, const Match& match, const std::string& order,
              std::optional<unsigned> rate = std::nullopt);
  /// Prints the progress until the job's end. The exit code.
  int follow(const std::string& id);

 private:
  /// Error: the exit code.
  std::expected<std::uint64_t, int> count(const std::string& what, const Match& match);
  /// Whether the person has typed the number.
  bool confirms(std::uint64_t count) const;

  std::optional<std::uint64_t> expect_;
  std::optional<unsigned> rate_;
  bool detach_ = false;
};

}  // namespace idem::cli
