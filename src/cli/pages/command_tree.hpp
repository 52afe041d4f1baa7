#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace idem::cli {

/// One option or positional argument of a command, as the parser has it.
struct CommandOption {
  std::vector<std::string> names{};  ///< "-X", "--request"; empty: only a positional argument.
  std::string positional{};          ///< Its name as a positional argument; empty: it is none.
  std::string value{};               ///< What stands for the value: "TEXT"; empty: a flag.
  std::vector<std::string> choices{};
  bool is_file = false;
  bool is_required = false;
  bool repeats = false;
  std::string help{};
  std::string default_value{};
  std::string variable{};
};

/// A command with its verbs. Manual pages and completions are made from it, so that they say what
/// the parser accepts.
struct CommandTree {
  std::string name{};
  std::string path{};  ///< "idem keys list"
  std::string text{};
  std::vector<std::string> notes{};  ///< The paragraphs below its help.
  std::vector<CommandOption> options{};
  std::vector<CommandTree> commands{};
  bool takes_options_of_parent = false;
};

/// The tree of `app`, with every command that is declared by now.
CommandTree read_tree(const CLI::App& app);

/// The first clause of a help text, without the names of variables: for a menu.
std::string brief(const std::string& help);

}  // namespace idem::cli
