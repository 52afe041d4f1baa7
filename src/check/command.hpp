#pragma once

#include <chrono>
#include <expected>
#include <string>

namespace idem::check {

enum class Output : std::uint8_t {
  collected,  ///< At most 1 MiB of it.
  dropped,
};

/// Runs a shell command in a process group of its own, which inherits no file but stderr, and waits
/// until the command itself has exited: what it leaves in the background goes on. After `most` its
/// group is killed. SIGINT and SIGTERM of this program go to the group first. What it printed; the
/// error is a sentence part. One command at a time.
std::expected<std::string, std::string> run_command(const std::string& command,
                                                    std::chrono::milliseconds most, Output output);

}  // namespace idem::check
