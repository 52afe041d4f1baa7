#pragma once

#include "cli/command_line/command.hpp"

#include <string>

namespace idem::cli {

/// `idem completion SHELL`: the script by which a shell completes the words behind `idem`.
class CompletionCommand {
 public:
  /// `program` outlives this.
  explicit CompletionCommand(const Command& program);

  bool parsed() const;
  int run() const;

 private:
  Command program_;
  Command command_;
  std::string shell_;
};

}  // namespace idem::cli
