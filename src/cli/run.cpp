#include "cli/commands/config_command.hpp"
#include "cli/commands/keys_command.hpp"
#include "cli/commands/migrate_command.hpp"
#include "cli/commands/outbox_command.hpp"
#include "cli/commands/status_command.hpp"
#include "cli/reconcile/reconcile_command.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

int version() {
  std::printf("idem %s\n", IDEM_VERSION);
  return done;
}

constexpr const char* footer =
    "Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 no answer, 4 not found, "
    "5 refused because of the state of a record or store.\n"
    "Settings: a flag wins over its IDEM_* variable, the variable over the file of --config. A "
    "relative path in the file is relative to the file's folder, any other to the working "
    "directory.";

}  // namespace

int run(int argc, char** argv) {
  CLI::App app{"Idem makes a retried API call have exactly one effect.", "idem"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "idem " IDEM_VERSION, "Print the version");
  app.footer(footer);
  auto* gateway_command = app.add_subcommand("gateway", "Run the reverse proxy in front of an API");
  const SettingsSource gateway_settings(*gateway_command);
  auto* worker_command = app.add_subcommand(
      "worker", "Sweep, reap, reconcile and deliver messages for a store, without a gateway");
  const SettingsSource worker_settings(*worker_command, Purpose::worker);
  const ConfigCommand config_command(app);
  KeysCommand keys(app);
  OutboxCommand outbox(app);
  DlqCommand dlq(app);
  ReconcileCommand reconcile(app);
  const MigrateCommand migrate(app);
  StatusCommand status(app);
  auto* version_command = app.add_subcommand("version", "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help ends well; everything else is wrong usage.
    return app.exit(error) == 0 ? done : usage;
  }
  if (version_command->parsed()) return version();
  if (keys.parsed()) return keys.run();
  if (outbox.parsed()) return outbox.run();
  if (dlq.parsed()) return dlq.run();
  if (reconcile.parsed()) return reconcile.run();
  if (migrate.parsed()) return migrate.run();
  if (status.parsed()) return status.run();
  if (worker_command->parsed()) return run_worker(worker_settings);
  if (config_command.parsed()) return config_command.run();
  return run_gateway(gateway_settings);
}

}  // namespace idem::cli
