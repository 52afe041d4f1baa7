#pragma once

#include "cli/command_line/command.hpp"

#include <string>
#include <vector>

namespace idem::cli {

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

/// The tree of `program`, with every command that is declared by now.
CommandTree read_tree(const Command& program);

/// The first clause of a help text, without the names of variables: for a menu.
std::string brief(const std::string& help);

}  // namespace idem::cli
