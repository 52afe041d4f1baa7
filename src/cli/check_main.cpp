#include "cli/check/check_command.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/messages.hpp"

#include <idem/version.hpp>

#include <exception>

/// `idem-check`: `idem check` as a program of its own, for users without Idem.
int main(int argc, char** argv) {
  CLI::App app{"Tests whether an HTTP API handles idempotency keys correctly.", "idem-check"};
  app.set_version_flag("--version", "idem-check " IDEM_VERSION, "Print the version");
  idem::cli::CheckCommand check(app, "idem-check");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string why = error.what();
    return idem::cli::say_error_of("idem-check", why + "; see --help", idem::cli::usage);
  }
  try {
    return check.run();
  } catch (const std::exception& error) {
    return idem::cli::say_error_of("idem-check", error.what(), idem::cli::failed);
  }
}
