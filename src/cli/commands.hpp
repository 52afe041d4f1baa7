#pragma once

#include "gateway/settings.hpp"
#include "metrics/tenants.hpp"
#include "workers/reconciler.hpp"

#include <idem/fingerprint.hpp>
#include <idem/log.hpp>
#include <idem/relay.hpp>
#include <idem/store.hpp>

#include <expected>
#include <map>
#include <memory>
#include <string>

/// The command line: reads settings, names the concrete stores, composes the parts.
namespace idem::cli {

/// How a command ends (docs/operations.md).
enum ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,
  not_reachable = 3,
  not_found = 4,
  refused = 5
};

int run(int argc, char** argv);

using Providers = std::map<std::string, std::shared_ptr<const workers::Provider>>;

struct GatewayOptions {
  std::string listen;
  std::string admin;  ///< Empty: no admin listener.
  /// Of the listener for clients; without a certificate it is plain.
  http::TlsContext::ServerFiles tls;
  std::string store;
  std::string store_id;                  ///< That it must be; empty: any.
  std::string spill_dir;                 ///< Never empty.
  std::vector<std::string> admin_hosts;  ///< Under which the admin listener may be addressed.
  Millis evidence_grace = limits::evidence_grace_default;
  metrics::TenantLabel tenant_label = metrics::TenantLabel::digest;
  bool log_requests = false;
  bool migrate = false;
  std::vector<Secret> secrets;  ///< Newest first; empty: the store's own.
  unsigned threads = 0;
  std::string log_format = "text";
  gateway::GatewaySettings settings;
  http::ServerStream::Options timers;
  std::size_t connections = limits::connections_default;
  std::size_t connections_per_address = limits::connections_per_address_default;
  std::vector<Destination> destinations{};
  Providers providers{};
};
/// Of destinations, for those who count by them.
std::vector<std::string> names_of(const std::vector<Destination>& destinations);

class SettingsSource;
/// Runs until it is told to end. SIGHUP reads the settings again.
int run_gateway(const SettingsSource& source);

/// Of a store that has none, where destinations are given.
inline constexpr const char* no_outbox =
    "destinations: this store has no outbox; SQLite and PostgreSQL have one";

/// Sweeper, reaper and the relay of the outbox, and an admin listener where one is named, without a
/// gateway. Runs until it is told to end.
int run_worker(const SettingsSource& source);

/// A secret out of a file of key material, of limits::secret_file_bytes_min to ..._max bytes, that
/// no stranger may read or change. The error names the file and never tells of its content.
std::expected<Secret, std::string> read_secret_file(const std::string& path);
/// The same about any other file that holds a secret.
std::expected<void, std::string> check_secret_file(const std::string& path);

/// One line an event on stderr, as text ("2026-11-01T12:00:00.000Z info event name=value ...") or
/// as a JSON object, with the time in UTC.
LogSink stderr_log(const std::string& format);

/// "150ms", "30s", "5m", "24h", "30d", or "0"; whole numbers only.
std::expected<Millis, std::string> parse_duration(const std::string& text);
/// "512B", "64KiB", "1MiB".
std::expected<std::size_t, std::string> parse_size(const std::string& text);

}  // namespace idem::cli
