#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace idem::cli {

/// `idem completion SHELL`: the script by which a shell completes the words behind `idem`.
class CompletionCommand {
 public:
  /// `app` outlives this.
  explicit CompletionCommand(CLI::App& app);

  bool parsed() const;
  int run() const;

 private:
  const CLI::App& app_;
  CLI::App& command_;
  std::string shell_;
};

}  // namespace idem::cli
