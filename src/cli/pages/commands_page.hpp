#pragma once

#include "cli/pages/command_tree.hpp"

#include <string>

namespace idem::cli {

/// docs/commands.md: each command of `tree` in a line, the rules of output, the exit codes.
std::string commands_page(const CommandTree& tree);

}  // namespace idem::cli
