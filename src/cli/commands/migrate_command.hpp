#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace idem::cli {

/// `idem migrate`: a store's schema is made, or upgraded, apart from a gateway's start, which may
/// then be of a role that owns nothing.
class MigrateCommand {
 public:
  explicit MigrateCommand(CLI::App& app);

  bool parsed() const;
  int run() const;

 private:
  CLI::App& command_;
  std::string store_;
};

}  // namespace idem::cli
