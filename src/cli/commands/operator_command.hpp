#pragma once

#include "cli/command_line/command.hpp"
#include "cli/commands/admin_client.hpp"
#include "json/writer.hpp"

#include <expected>
#include <string>

namespace idem::cli {

/// A command that sends an operator's requests to the admin API: options for its URL and the
/// operator's name, and the printing of its answers.
class OperatorCommand {
 public:
  bool parsed() const { return command_.parsed(); }
  /// On stderr, of variables that nobody reads and that are nearly the names of ours.
  void warn_of_variables() const;

 protected:
  struct Form {
    bool has_verbs = true;
    bool decides = true;   ///< It sends decisions, which have their operator's name.
    std::string parent{};  ///< The command of which this is a verb; empty: of none.
  };
  /// Declares the command with the options of all its verbs; `program` outlives this.
  OperatorCommand(const Command& program, const char* name, const char* text, const Form& form);
  OperatorCommand(const Command& program, const char* name, const char* text)
      : OperatorCommand(program, name, text, Form()) {}

  const Command& command() const { return command_; }
  bool json() const { return json_; }
  const std::string& name() const { return name_; }
  const std::string& admin_url() const { return access_.url; }

  /// Declares a verb.
  Command declare(const char* name, const char* text);
  /// Sends a GET, or a POST with `body`, and returns the answer. Error: the exit code; the reason
  /// is already printed.
  std::expected<AdminAnswer, int> ask(const std::string& target, const std::string* body) const;
  /// Prints why the answer is not a 200. The exit code.
  int complain_about(const AdminAnswer& answer) const;
  /// Sends a request and prints the answer: with `print`, which returns false if it is
  /// none of the admin API, or as JSON with --json. The exit code.
  int finish(const std::string& target, const std::string* body,
             bool (*print)(const std::string& json));
  /// Prints the approval that an order waits for (202). The exit code of a refusal: nothing is
  /// done.
  int say_that_it_waits(const AdminAnswer& answer) const;
  /// Prints an answer: with `print`, or as JSON with --json. The exit code.
  int show(const std::string& json, bool (*print)(const std::string& json)) const;
  /// Prints `sentence` on stderr and returns `code`.
  int complain(const std::string& sentence, int code) const;

 private:
  std::string name_;
  Command command_;
  AdminAccess access_;
  bool json_ = false;
};

/// The complaint about an answer that this version does not understand.
inline constexpr const char* malformed_answer =
    "this is no answer of the admin API; does --admin-url name a gateway's admin listener, and is "
    "the gateway of this version?";

/// The detail or title of a problem, as a sentence that is safe for the terminal.
std::string sentence_of(const AdminAnswer& answer);

/// Adds `name=value` to a target's query unless the value is empty.
void add_parameter(std::string& target, const char* name, const std::string& value);

/// Writes a field of an answer, "Name: value", as the admin API reads it: ["Name","value"].
void write_header(json::Writer& out, const std::string& line);

}  // namespace idem::cli
