#include "cli/gateway_flags.hpp"
#include "cli/keys_command.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

int version() {
  std::printf("idem %s\n", IDEM_VERSION);
  return done;
}

int gateway(const GatewayFlags& flags) {
  const auto options = understand(flags);
  if (!options) {
    std::fprintf(stderr, "idem gateway: %s\n", options.error().c_str());
    return usage;
  }
  return run_gateway(*options);
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app{"Idem makes a retried API call have exactly one effect.", "idem"};
  app.require_subcommand(1);
  GatewayFlags flags;
  auto* gateway_command = app.add_subcommand("gateway", "Run the reverse proxy in front of an API");
  declare(*gateway_command, flags);
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
  return gateway(flags);
}

}  // namespace idem::cli
