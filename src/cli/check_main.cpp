#include "cli/check/check_command.hpp"
#include "cli/command_line/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/messages.hpp"

#include <idem/version.hpp>

#include <exception>

/// `idem-check`: `idem check` as a program of its own, for users without Idem.
int main(int argc, char** argv) {
  idem::cli::CommandLine line("Tests whether an HTTP API handles idempotency keys correctly.",
                              "idem-check");
  line.set_version("idem-check " IDEM_VERSION);
  idem::cli::CheckCommand check(line, "idem-check");
  const auto asked = line.parse(argc, argv);
  if (!asked) {
    return idem::cli::say_error_of("idem-check", asked.error() + "; see --help", idem::cli::usage);
  }
  if (*asked == idem::cli::Asked::help) return idem::cli::done;
  try {
    return check.run();
  } catch (const std::exception& error) {
    return idem::cli::say_error_of("idem-check", error.what(), idem::cli::failed);
  }
}
