#pragma once

#include "cli/settings/gateway_flags.hpp"

#include <CLI/CLI.hpp>

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// What a gateway was told, as texts and understood.
struct ReadSettings {
  GatewayFlags given;
  GatewayOptions options;
  /// What may be meant otherwise: "PLACE: sentence".
  std::vector<std::string> warnings{};
};

/// Where settings come from: a flag beats the environment beats the file beats the default. Can be
/// asked again; then the file is read anew.
class SettingsSource {
 public:
  /// Declares --config and a flag for each setting; `command` is kept.
  explicit SettingsSource(CLI::App& command, Purpose purpose = Purpose::gateway);

  /// The texts alone; `complaints` tells what is wrong with their shape. Nothing when the file
  /// could not be read as settings at all.
  std::optional<GatewayFlags> gather(Complaints& complaints) const;
  /// All of it, or every complaint as a line.
  std::expected<ReadSettings, std::vector<std::string>> read() const { return read_for(purpose_); }
  /// The same, as another command would.
  std::expected<ReadSettings, std::vector<std::string>> read_for(Purpose purpose) const;

  /// Whose settings they are, where nobody says it: a worker's, where something is given, and
  /// nothing of it is for a gateway alone, nor a scope.
  Purpose guessed_purpose() const;

 private:
  bool declares(const config::Setting& setting) const;
  bool parse_file(std::vector<config::Setting>& table, Complaints& complaints) const;

  CLI::App& command_;
  Purpose purpose_;
  std::string file_;
};

/// The settings for which a reload is not enough and that differ, by their names in the file.
std::vector<std::string> changed_for_restart(GatewayFlags before, GatewayFlags after);

}  // namespace idem::cli
