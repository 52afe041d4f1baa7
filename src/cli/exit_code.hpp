#pragma once

namespace idem::cli {

/// How a command ends (docs/commands.md).
enum ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,
  not_reachable = 3,
  not_found = 4,
  refused = 5
};

}  // namespace idem::cli
