#pragma once

/// The command line: reads the settings and composes the parts of a process.
namespace idem::cli {

int run(int argc, char** argv);

class SettingsSource;
/// Runs until SIGTERM or SIGINT; SIGHUP reads the settings again. The exit code.
int run_gateway(const SettingsSource& source);

/// Runs sweeper, reaper, reconciler, relay and, if configured, the admin listener, without a
/// gateway, until SIGTERM or SIGINT. The exit code.
int run_worker(const SettingsSource& source);

}  // namespace idem::cli
