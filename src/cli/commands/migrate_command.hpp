#pragma once

#include "cli/command_line/command.hpp"

#include <string>

namespace idem::cli {

/// `idem migrate`: creates or upgrades a store's schema, so that the gateway may start with a
/// database role that owns no tables.
class MigrateCommand {
 public:
  explicit MigrateCommand(const Command& program);

  bool parsed() const;
  int run() const;

 private:
  Command command_;
  std::string store_;
  bool json_ = false;
};

}  // namespace idem::cli
