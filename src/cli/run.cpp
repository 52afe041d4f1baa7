#include "cli/check/check_command.hpp"
#include "cli/command_line/command.hpp"
#include "cli/commands.hpp"
#include "cli/commands/admin_command.hpp"
#include "cli/commands/approvals_command.hpp"
#include "cli/commands/audit_command.hpp"
#include "cli/commands/completion_command.hpp"
#include "cli/commands/config_command.hpp"
#include "cli/commands/console_command.hpp"
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
#include "cli/commands/usage_error.hpp"
#include "cli/doctor/doctor_command.hpp"
#include "cli/pages/exit_codes.hpp"
#include "cli/reconcile/reconcile_command.hpp"
#include "cli/terminal/messages.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <string>

namespace idem::cli {
namespace {

int version(bool json) {
  std::printf(json ? "{\"version\":\"%s\"}\n" : "idem %s\n", IDEM_VERSION);
  return done;
}

constexpr const char* signals_of_gateway =
    "SIGHUP: reads the settings again and applies them, or keeps the present ones and logs why "
    "(idem config changes shows the difference before).\n"
    "SIGUSR2: the program that now lies at its path takes over with the same process id and "
    "sockets, after idem config check --ask-store has accepted the settings.\n"
    "SIGTERM, SIGINT: ends once the running requests have their answers; a second one ends it at "
    "once.";
constexpr const char* signals_of_worker =
    "SIGTERM, SIGINT: ends once what runs is settled. SIGHUP and SIGUSR2 are refused: a worker "
    "reads its settings only at its start.";

std::string notes() {
  std::string codes;
  for (const auto& one : exit_meanings) {
    codes += (codes.empty() ? "" : ", ") + std::to_string(one.code) + " " + one.brief;
  }
  return "Exit codes: " + codes +
         ".\n"
         "Settings: a flag wins over its IDEM_* variable, the variable over the file of --config. "
         "A relative path in the file is relative to the file's folder, any other to the working "
         "directory.";
}

/// A result that did not arrive, on a full disk for example, is not done.
int with_output_written(int code) {
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (is_written) return code;
  const int sent =
      say_error("",
                "the output cannot be written" + std::string(errno != 0 ? ": " : "") +
                    (errno != 0 ? std::strerror(errno) : "") + "; write it to another place",
                failed);
  return code == done ? sent : code;
}

int run_command(int argc, char** argv) {
  CommandLine line("Idem makes a retried API call have exactly one effect.", "idem");
  line.require_command();
  line.set_version("idem " IDEM_VERSION);
  line.set_notes(notes());
  const InitCommand init(line);
  const Command gateway_command =
      line.add_command("gateway", "Run the reverse proxy in front of an API");
  gateway_command.set_notes(notes() + "\n" + signals_of_gateway);
  const SettingsSource gateway_settings(gateway_command);
  const Command worker_command = line.add_command(
      "worker", "Sweep, reap, reconcile and deliver messages for a store, without a gateway");
  worker_command.set_notes(notes() + "\n" + signals_of_worker);
  const SettingsSource worker_settings(worker_command, Purpose::worker);
  ConfigCommand config_command(line);
  const DoctorCommand doctor(line);
  KeysCommand keys(line);
  OutboxCommand outbox(line);
  DlqCommand dlq(line);
  JobsCommand jobs(line);
  ApprovalsCommand approvals(line);
  ReconcileCommand reconcile(line);
  const MigrateCommand migrate(line);
  StatusCommand status(line);
  ConsoleCommand console(line);
  ExplainCommand explain(line);
  ShadowCommand shadow(line);
  AdminCommand admin(line);
  AuditCommand audit(line);
  StoreCommand store(line);
  const Command version_command = line.add_command("version", "Print the version");
  bool version_json = false;
  version_command.add_flag("--json", version_json, json_help);
  CheckCommand check(line.add_command("check", "Test how an API handles idempotency keys"));
  const CompletionCommand completion(line);
  const ManCommand man(line);
  const auto asked = line.parse(argc, argv);
  if (!asked) return refuse_usage(line, asked.error());
  if (*asked == Asked::help) return done;
  if (version_command.parsed()) return version(version_json);
  for (const OperatorCommand* const one : std::initializer_list<const OperatorCommand*>{
           &keys, &outbox, &dlq, &jobs, &approvals, &reconcile, &status, &console, &admin, &explain,
           &shadow, &audit, &store}) {
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
  if (console.parsed()) return console.run();
  if (explain.parsed()) return explain.run();
  if (shadow.parsed()) return shadow.run();
  if (admin.parsed()) return admin.run();
  if (audit.parsed()) return audit.run();
  if (store.parsed()) return store.run();
  if (check.parsed()) return check.run();
  if (init.parsed()) return init.run();
  if (doctor.parsed()) return doctor.run();
  if (completion.parsed()) return completion.run();
  if (man.parsed()) return man.run();
  if (worker_command.parsed()) return run_worker(worker_settings);
  if (config_command.parsed()) return config_command.run();
  return run_gateway(gateway_settings);
}

}  // namespace

int run(int argc, char** argv) {
  forbid_core_dumps();  // Before a token or a secret is read.
  return with_output_written(run_command(argc, argv));
}

}  // namespace idem::cli
