#pragma once

#include "cli/command_line/command.hpp"

#include <string>

namespace idem::cli {

/// `idem man`: pages of the manual, made from the parser and the table of settings.
class ManCommand {
 public:
  /// Declare it behind all other commands: it names their pages. `program` outlives this.
  explicit ManCommand(const Command& program);

  bool parsed() const;
  int run() const;

 private:
  int write_all() const;

  Command program_;
  Command command_;
  std::string page_ = "idem";
  std::string folder_;
  bool markdown_ = false;
};

}  // namespace idem::cli
