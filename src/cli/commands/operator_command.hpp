#pragma once

#include "cli/commands/admin_client.hpp"

#include <CLI/CLI.hpp>

#include <expected>
#include <string>

namespace idem::cli {

/// A command that asks the admin API for an operator: where it is, who decides, and what is told of
/// its answers.
class OperatorCommand {
 public:
  bool parsed() const { return command_->parsed(); }

 protected:
  /// Declares the command with the options that all its verbs have; `app` outlives this.
  OperatorCommand(CLI::App& app, const char* name, const char* text, bool has_verbs = true);

  CLI::App& command() { return *command_; }
  bool json() const { return json_; }

  CLI::App* declare(const char* name, const char* text);
  /// What the admin API answers. Where nobody does, why not was told, and this is the exit code.
  std::expected<AdminAnswer, int> ask(const std::string& target, const std::string* body) const;
  /// Tells why an answer is none of 200. The exit code.
  int complain_about(const AdminAnswer& answer) const;
  /// Asks and tells what came: the JSON, or what `print` makes of it. The exit code.
  int finish(const std::string& target, const std::string* body,
             void (*print)(const std::string& json));
  int complain(const std::string& sentence, int code) const;

 private:
  std::string name_;
  CLI::App* command_;
  AdminAccess access_;
  bool json_ = false;
};

/// What a problem says, in a sentence for the operator's terminal.
std::string sentence_of(const AdminAnswer& answer);

/// Adds `name=value` to a target's query, where there is a value.
void add_parameter(std::string& target, const char* name, const std::string& value);

}  // namespace idem::cli
