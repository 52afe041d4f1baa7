#pragma once

#include "cli/command_line/command.hpp"
#include "cli/settings/gateway_flags.hpp"
#include "cli/settings/gateway_options.hpp"

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// Settings as texts and parsed.
struct ReadSettings {
  GatewayFlags given;
  GatewayOptions options;
  /// Warnings: "PLACE: sentence".
  std::vector<std::string> warnings{};
};

/// The sources of settings: a flag wins over the environment, the environment over the file, the
/// file over the default. Each read reads the file again.
class SettingsSource {
 public:
  /// Declares --config and a flag for each setting; `command` outlives this.
  explicit SettingsSource(const Command& command, Purpose purpose = Purpose::gateway);
  /// Declares a flag for each setting of a gateway that `declared` picks, and no --config: those
  /// are the flags of a command that makes a file.
  SettingsSource(const Command& command, bool (*declared)(const config::Setting& setting));

  /// The texts; complaints are about their shapes. None: the file could not be read as settings.
  std::optional<GatewayFlags> gather(Complaints& complaints) const;
  /// The same, with paths as they were given.
  std::optional<GatewayFlags> gather_as_given(Complaints& complaints) const;
  /// Texts and values, or every complaint as a line.
  std::expected<ReadSettings, std::vector<std::string>> read() const { return read_for(purpose_); }
  /// The same, for another command.
  std::expected<ReadSettings, std::vector<std::string>> read_for(Purpose purpose) const;

  /// Guesses the command: a worker, if file and flags have settings, and neither a scope nor one
  /// for a gateway only. Variables say nothing, because several commands may share them.
  Purpose guessed_purpose() const;

  /// Variables of this process that no command reads, as warnings. Needed where read() refuses,
  /// which returns complaints only.
  static std::vector<std::string> variables_without_effect();

  /// Ends the start of a process whose settings are refused: prints the complaints behind those
  /// warnings, in the log's format. The exit code.
  int refuse(const char* command, const std::vector<std::string>& complaints) const;

 private:
  void declare_flags();
  bool declares(const config::Setting& setting) const;
  bool parse_file(std::vector<config::Setting>& table, Complaints& complaints) const;

  Command command_;
  Purpose purpose_;
  bool (*declared_)(const config::Setting&) = nullptr;  ///< Null: all of the purpose's settings.
  std::string file_;
};

/// Gives the setting of `flag` a value, as its variable would: the items of a list are separated by
/// commas. A complaint about it names the flag.
void give(GatewayFlags& flags, std::string_view flag, const std::string& text);

}  // namespace idem::cli
