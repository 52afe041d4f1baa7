#include "cli/config_command.hpp"
#include "cli/keys_command.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

int version() {
  std::printf("idem %s\n", IDEM_VERSION);
  return done;
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app{"Idem makes a retried API call have exactly one effect.", "idem"};
  app.require_subcommand(1);
  auto* gateway_command = app.add_subcommand("gateway", "Run the reverse proxy in front of an API");
  const SettingsSource gateway_settings(*gateway_command);
  const ConfigCommand config_command(app);
  KeysCommand keys(app);
  auto* version_command = app.add_subcommand("version", "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help ends well; everything else is wrong usage.
    return app.exit(error) == 0 ? done : usage;
  }
  if (version_command->parsed()) return version();
  if (keys.parsed()) return keys.run();
  if (config_command.parsed()) return config_command.run();
  return run_gateway(gateway_settings);
}

}  // namespace idem::cli
