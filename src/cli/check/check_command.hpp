#pragma once

#include "check/spec.hpp"
#include "check/verdict.hpp"
#include "check/wire/connection.hpp"
#include "cli/command_line/command.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// `idem check URL`: tests any API from outside (docs/check.md). Needs no server of Idem.
class CheckCommand {
 public:
  /// `command` outlives this. `program`: how it was called, "idem check" or "idem-check".
  explicit CheckCommand(const Command& command, std::string program = "idem check");

  bool parsed() const { return command_.parsed(); }
  int run();

 private:
  int list() const;
  int check();
  int init();
  int complain(const std::string& sentence, int code) const;
  /// The file; the error is the exit code, after the complaints.
  std::expected<check::Spec, int> read() const;
  /// What can be refused before anything is sent; none: nothing.
  std::optional<int> refuse_early() const;
  /// Whether requests may be sent to it: on this machine, or with --i-own-this.
  bool may_send(const check::Origin& origin, const std::string& host) const;
  /// Waits with --wait until the API answers, and runs the cases.
  std::expected<check::Report, std::string> run_cases(const check::Spec& spec,
                                                      const check::Origin& origin) const;
  int write_reports(const check::Report& report) const;
  /// --config, relative to the working directory if it lies below.
  std::string config_path() const;

  Command command_;
  std::string program_;
  Command init_;
  std::string openapi_, path_;
  bool force_ = false;
  std::string url_;
  std::string config_ = "idem-check.yaml";
  std::string profile_;
  std::string json_, junit_, sarif_, html_, badge_;
  std::optional<std::uint64_t> seed_;
  std::vector<std::string> only_;
  std::string wait_;
  double rate_ = 50;
  std::size_t requests_max_ = 5'000;
  bool dry_run_ = false;
  bool owns_it_ = false;
  bool insecure_ = false;
  bool list_ = false;
};

}  // namespace idem::cli
