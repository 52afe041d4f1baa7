#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Only command.cpp includes the parser behind these classes: it has 80,000 lines.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace idem::cli {

/// What is known of a declared option, flag or positional argument.
struct CommandOption {
  std::vector<std::string> names{};  ///< "-X", "--request"; empty: only a positional argument.
  std::string positional{};          ///< Its name as a positional argument; empty: it is none.
  std::string value{};               ///< What stands for the value: "TEXT"; empty: a flag.
  std::vector<std::string> choices{};
  bool is_file = false;
  bool is_required = false;
  bool repeats = false;
  std::string help{};  ///< With the range of a number: "how many, 1 to 9".
  std::string default_value{};
  std::string variable{};
};

/// An option, a flag or a positional argument that is being declared. A copy means the same one;
/// the CommandLine outlives it.
class Option {
 public:
  Option required() const;
  /// The value is the path of a file: help says FILE, and shells complete it.
  Option file() const;
  /// Help and completions show these values; the user of the value refuses others.
  Option choices(const std::vector<std::string>& values) const;
  /// The same, and the parser refuses others.
  Option one_of(const std::vector<std::string>& values) const;
  /// The parser refuses a value for which this gives a sentence.
  Option valid(std::string (*why_not)(const std::string& value)) const;
  /// The parser refuses other numbers.
  Option between(int least, int most) const;
  /// An environment variable that gives the value where the option is not given.
  Option variable(const std::string& name) const;
  /// Help shows the present content of the variable as the default.
  Option show_default() const;
  /// Help shows this text as the default.
  Option show_default(const std::string& text) const;
  /// One text holds several values.
  Option separated_by(char separator) const;
  /// The parser refuses it when it is given a second time.
  Option once() const;
  /// Each time that it is given takes one value; the next word is no further one.
  Option one_value_each() const;
  /// A list gets at least `least` and at most `most` values.
  Option values(int least, int most) const;
  /// Replaces the text of the help.
  Option describe(const std::string& help) const;

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

/// A command of a program, or the program itself: declares its options and verbs, and says after
/// CommandLine::parse() which of them were given. A copy means the same command; the CommandLine
/// outlives it, and so does each variable that an option is bound to.
class Command {
 public:
  /// Declares a command below this one, which begins with the notes of this one.
  Command add_command(const std::string& name, const std::string& text) const;

  /// Declare an option, `names` being such as "--json" or "-o,--output", or a positional argument,
  /// whose name has no dash; "url,--store" is both. The value goes to `value`, which stays as it is
  /// if none is given. A list takes all words up to the next option, unless one_value_each().
  Option add_option(const std::string& names, std::string& value, const std::string& help) const;
  Option add_option(const std::string& names, std::optional<std::string>& value,
                    const std::string& help) const;
  Option add_option(const std::string& names, std::vector<std::string>& value,
                    const std::string& help) const;
  Option add_option(const std::string& names, int& value, const std::string& help) const;
  Option add_option(const std::string& names, std::uint64_t& value, const std::string& help) const;
  Option add_option(const std::string& names, double& value, const std::string& help) const;
  Option add_option(const std::string& names, std::optional<unsigned>& value,
                    const std::string& help) const;
  Option add_option(const std::string& names, std::optional<std::uint64_t>& value,
                    const std::string& help) const;
  Option add_option(const std::string& names, std::optional<double>& value,
                    const std::string& help) const;
  /// The same without a variable: values_of() has the values.
  Option add_option(const std::string& names, const std::string& help) const;
  /// Declare an option without a value; "--json=false" undoes it.
  Option add_flag(const std::string& names, bool& value, const std::string& help) const;
  Option add_flag(const std::string& names, const std::string& help) const;

  /// An option that is declared here.
  Option option(const std::string& name) const;
  bool has_option(const std::string& name) const;

  /// Sets the paragraphs below the help, one for each line.
  void set_notes(const std::string& notes) const;
  /// The parser refuses this command without one of its verbs.
  void require_command() const;
  /// The options of the command above may follow this one.
  void take_options_of_parent() const;

  std::string name() const;
  std::string text() const;
  std::string notes() const;
  bool requires_command() const;
  bool takes_options_of_parent() const;
  std::optional<Command> parent() const;
  /// In the order of their declaration, --help first.
  std::vector<CommandOption> options() const;
  /// All that are declared by now, in that order.
  std::vector<Command> commands() const;

  /// Whether the command was given.
  bool parsed() const;
  /// Those of commands() that were given.
  std::vector<Command> given_commands() const;
  /// The values that were given to an option, as texts; "true" for a flag. Empty: it was not given.
  std::vector<std::string> values_of(const std::string& name) const;
  /// Words that parse() could not place here.
  std::vector<std::string> words_left() const;
  /// The same, with those of the given commands below.
  std::vector<std::string> all_words_left() const;

 protected:
  explicit Command(CLI::App* app) : app_(app) {}

  CLI::App* app_;
};

/// The help of a flag that makes the result on stdout one JSON text.
inline constexpr const char* json_help = "print the result as JSON";

/// What a user asked a program for.
enum class Asked : std::uint8_t { command, help };

/// A program's command line, which owns all that is declared.
class CommandLine : public Command {
 public:
  explicit CommandLine(const std::string& text = {}, const std::string& name = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Declares --version, which prints `text`.
  void set_version(const std::string& text) const;

  /// Reads the words of main() into the variables. Help or a version that was asked for is printed,
  /// and nothing else is to be done. The error is the parser's sentence about wrong words.
  std::expected<Asked, std::string> parse(int argc, const char* const* argv);
  /// The same for words without the program's name.
  std::expected<Asked, std::string> parse(std::vector<std::string> words);

 private:
  explicit CommandLine(std::unique_ptr<CLI::App> app);

  std::unique_ptr<CLI::App> owned_;
};

}  // namespace idem::cli
