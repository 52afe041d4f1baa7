#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace idem::cli {

/// `idem man`: pages of the manual, made from the parser and the table of settings.
class ManCommand {
 public:
  /// Declare it behind all other commands: it names their pages. `app` outlives this.
  explicit ManCommand(CLI::App& app);

  bool parsed() const;
  int run() const;

 private:
  int write_all() const;

  const CLI::App& app_;
  CLI::App& command_;
  std::string page_ = "idem";
  std::string folder_;
  bool markdown_ = false;
};

}  // namespace idem::cli
