#pragma once

#include "cli/command_line/command.hpp"

#include <string>

namespace idem::cli {

/// Says on stderr what is wrong with the words of a command line, and what to write instead.
/// `program` has parsed them, and `complaint` is why it refused. The exit code.
int refuse_usage(const Command& program, const std::string& complaint);

}  // namespace idem::cli
