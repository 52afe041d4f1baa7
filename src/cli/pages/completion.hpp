#pragma once

#include "cli/pages/command_tree.hpp"

#include <string>
#include <vector>

namespace idem::cli {

/// What may stand behind one command, options of its parent included.
struct CompletedCommand {
  std::string path{};  ///< "idem keys list"
  std::vector<const CommandTree*> commands{};
  std::vector<const CommandOption*> options{};      ///< That have a name.
  std::vector<const CommandOption*> positionals{};  ///< Likewise in the order of the words.
};

/// All commands of `tree`, itself first. The pointers point into `tree`.
std::vector<CompletedCommand> completed_commands(const CommandTree& tree);

/// Scripts that complete the words behind `idem`. They hold the whole tree: pressing Tab starts no
/// process.
std::string bash_completion(const CommandTree& tree);
std::string zsh_completion(const CommandTree& tree);
std::string fish_completion(const CommandTree& tree);

}  // namespace idem::cli
