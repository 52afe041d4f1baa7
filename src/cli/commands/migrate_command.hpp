#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace idem::cli {

/// `idem migrate`: creates or upgrades a store's schema, so that the gateway may start with a
/// database role that owns no tables.
class MigrateCommand {
 public:
  explicit MigrateCommand(CLI::App& app);

  bool parsed() const;
  int run() const;

 private:
  CLI::App& command_;
  std::string store_;
  bool json_ = false;
};

}  // namespace idem::cli
