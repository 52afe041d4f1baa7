#pragma once

#include "check/spec.hpp"
#include "check/verdict.hpp"
#include "check/wire/connection.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// `idem check URL`: judges any API from outside (docs/check.md). Needs no server of Idem.
class CheckCommand {
 public:
  /// `app` outlives this: the command, or the program `idem-check`, which is nothing else.
  explicit CheckCommand(CLI::App& app);

  bool parsed() const { return command_.parsed(); }
  int run();

 private:
  int list() const;
  int check();
  int init();
  /// The file; the error is the exit code, behind what is wrong.
  std::expected<check::Spec, int> read() const;
  /// Whether it may be sent to: on this machine, or the operator says so.
  bool may_send(const check::Origin& origin, const std::string& host) const;
  int write_reports(const check::Report& report) const;

  CLI::App& command_;
  CLI::App* init_;
  std::string openapi_, path_;
  bool force_ = false;
  std::string url_;
  std::string config_ = "idem-check.yaml";
  std::string profile_;
  std::string json_, junit_, sarif_, html_, badge_;
  std::optional<std::uint64_t> seed_;
  std::vector<std::string> only_;
  double rate_ = 50;
  std::size_t requests_max_ = 5'000;
  bool dry_run_ = false;
  bool owns_it_ = false;
  bool insecure_ = false;
  bool list_ = false;
};

}  // namespace idem::cli
