#pragma once

#include <idem/worker_limits.hpp>
#include "cli/command_line/command.hpp"
#include "compare/comparison.hpp"

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// The value that matches a line to a record.
enum class MatchBy : std::uint8_t { key, operation, reference, derived };

/// Where a provider's list is.
struct ListPlace {
  std::string url{};
  std::string items = "/data";
  std::string next = "/next";
  std::string next_parameter{};
  std::vector<std::string> allowed_hosts{};
  std::string auth_file{};
  std::string ca_file{};
  std::string timeout{};
};

/// The options of `idem reconcile`.
struct ReconcileOptions {
  std::string file{};
  std::string format{};
  ListPlace list{};

  std::string by = "key";
  std::string match{}, phase{}, our_reference{};
  std::string scope{}, scope_at{}, operation{};
  std::string amount{}, our_amount = "/amount", currency{}, our_currency = "/currency";
  int scale = 0;
  std::string status{}, id{}, time{};
  std::vector<std::string> happened{};
  std::vector<std::string> refused{};
  std::string from{}, to{}, slack{};
  std::size_t rows = 50;

  bool resolve = false;
  bool resolve_absent = false;
  int response_status = 0;
  std::vector<std::string> response_headers{};
  std::string observed_at{}, export_delay{};
  std::string reason = "ledger comparison";

  // Filled in by check().
  MatchBy match_by = MatchBy::key;
  compare::Rules rules{};
  std::optional<StoreTime> observed{};
  Millis delay = limits::export_delay_default;
  Millis page_timeout = limits::fetch_timeout_default;

  /// Declares the options on `command`, which outlives them.
  void declare(const Command& command);
  /// Its part about --resolve.
  void declare_settling(const Command& command);
  /// Checks the options together and parses them. The error is a sentence that names the option.
  std::expected<void, std::string> check();
};

}  // namespace idem::cli
