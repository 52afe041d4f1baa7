#pragma once

#include "cli/exit_code.hpp"

#include <idem/log.hpp>

#include <string>

/// The command line: reads the settings and composes the parts of a process.
namespace idem::cli {

int run(int argc, char** argv);

class SettingsSource;
/// Runs until SIGTERM or SIGINT; SIGHUP reads the settings again. The exit code.
int run_gateway(const SettingsSource& source);

/// Runs sweeper, reaper, reconciler, relay and, if configured, the admin listener, without a
/// gateway, until SIGTERM or SIGINT. The exit code.
int run_worker(const SettingsSource& source);

/// Writes one line per event to stderr: text ("2026-11-01T12:00:00.000Z info event name=value ...")
/// or, with format "json", a JSON object. The time is in UTC.
LogSink stderr_log(const std::string& format);

/// Why a process does not start.
struct StartFailure {
  std::string why;  ///< A sentence.
  int exit_code = failed;
};
/// Says it on stderr: as an event where the log is JSON, because a reader of it expects nothing
/// else, otherwise as a plain sentence. The exit code.
int fail_start(const char* command, const std::string& format, const LogSink& log,
               const StartFailure& failure);

}  // namespace idem::cli
