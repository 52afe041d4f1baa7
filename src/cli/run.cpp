#include "cli/commands/admin_command.hpp"
#include "cli/commands/approvals_command.hpp"
#include "cli/commands/audit_command.hpp"
#include "cli/commands/completion_command.hpp"
#include "cli/commands/config_command.hpp"
#include "cli/commands/core_dumps.hpp"
#include "cli/commands/explain_command.hpp"
#include "cli/commands/init_command.hpp"
#include "cli/commands/jobs_command.hpp"
#include "cli/commands/keys_command.hpp"
#include "cli/commands/man_command.hpp"
#include "cli/commands/migrate_command.hpp"
#include "cli/commands/outbox_command.hpp"
#include "cli/commands/shadow_command.hpp"
#include "cli/commands/status_command.hpp"
#include "cli/commands/store_command.hpp"
#include "cli/doctor/doctor_command.hpp"
#include "cli/reconcile/reconcile_command.hpp"

#include <cstdio>
#include <initializer_list>
#include <string>

namespace idem::cli {
namespace {

int version() {
  std::printf("idem %s\n", IDEM_VERSION);
  return done;
}

constexpr const char* footer =
    "Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 no answer, 4 not found, "
    "5 refused because of the state of a record, store or file.\n"
    "Settings: a flag wins over its IDEM_* variable, the variable over the file of --config. A "
    "relative path in the file is relative to the file's folder, any other to the working "
    "directory.";

/// The sentence about a word that is no command, of which CLI11 only says that there is none.
/// Empty: something else is wrong.
std::string wrong_word(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string path = app.get_name();
  for (auto parsed = at->get_subcommands(); !parsed.empty(); parsed = at->get_subcommands()) {
    at = parsed.front();
    path += " " + at->get_name();
  }
  const auto words = at->remaining();
  const bool lacks_command = at->get_require_subcommand_min() > 0;
  if (!lacks_command || words.empty() || words.front().starts_with('-')) return "";
  return path + ": there is no command \"" + words.front() + "\"; " + path + " --help lists them";
}

}  // namespace

int run(int argc, char** argv) {
  forbid_core_dumps();  // Before a token or a secret is read.
  CLI::App app{"Idem makes a retried API call have exactly one effect.", "idem"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "idem " IDEM_VERSION, "Print the version");
  app.footer(footer);
  const InitCommand init(app);
  auto* gateway_command = app.add_subcommand("gateway", "Run the reverse proxy in front of an API");
  const SettingsSource gateway_settings(*gateway_command);
  auto* worker_command = app.add_subcommand(
      "worker", "Sweep, reap, reconcile and deliver messages for a store, without a gateway");
  const SettingsSource worker_settings(*worker_command, Purpose::worker);
  ConfigCommand config_command(app);
  const DoctorCommand doctor(app);
  KeysCommand keys(app);
  OutboxCommand outbox(app);
  DlqCommand dlq(app);
  JobsCommand jobs(app);
  ApprovalsCommand approvals(app);
  ReconcileCommand reconcile(app);
  const MigrateCommand migrate(app);
  StatusCommand status(app);
  ExplainCommand explain(app);
  ShadowCommand shadow(app);
  AdminCommand admin(app);
  AuditCommand audit(app);
  StoreCommand store(app);
  auto* version_command = app.add_subcommand("version", "Print the version");
  const CompletionCommand completion(app);
  const ManCommand man(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const auto wrong = error.get_exit_code() == 0 ? std::string() : wrong_word(app);
    if (!wrong.empty()) {
      std::fprintf(stderr, "%s\n", wrong.c_str());
      return usage;
    }
    // Help ends well; everything else is wrong usage.
    return app.exit(error) == 0 ? done : usage;
  }
  if (version_command->parsed()) return version();
  for (const OperatorCommand* const one : std::initializer_list<const OperatorCommand*>{
           &keys, &outbox, &dlq, &jobs, &approvals, &reconcile, &status, &admin, &explain, &shadow,
           &audit, &store}) {
    if (one->parsed()) one->warn_of_variables();
  }
  if (keys.parsed()) return keys.run();
  if (outbox.parsed()) return outbox.run();
  if (dlq.parsed()) return dlq.run();
  if (jobs.parsed()) return jobs.run();
  if (approvals.parsed()) return approvals.run();
  if (reconcile.parsed()) return reconcile.run();
  if (migrate.parsed()) return migrate.run();
  if (status.parsed()) return status.run();
  if (explain.parsed()) return explain.run();
  if (shadow.parsed()) return shadow.run();
  if (admin.parsed()) return admin.run();
  if (audit.parsed()) return audit.run();
  if (store.parsed()) return store.run();
  if (init.parsed()) return init.run();
  if (doctor.parsed()) return doctor.run();
  if (completion.parsed()) return completion.run();
  if (man.parsed()) return man.run();
  if (worker_command->parsed()) return run_worker(worker_settings);
  if (config_command.parsed()) return config_command.run();
  return run_gateway(gateway_settings);
}

}  // namespace idem::cli
