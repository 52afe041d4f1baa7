#pragma once

#include "admin/links.hpp"
#include "admin/login/login_settings.hpp"
#include "cli/exit_code.hpp"
#include "gateway/settings.hpp"
#include "metrics/tenants.hpp"
#include "tracing/settings.hpp"
#include "workers/reconciler.hpp"

#include <idem/fingerprint.hpp>
#include <idem/log.hpp>
#include <idem/open_store.hpp>
#include <idem/relay.hpp>
#include <idem/store.hpp>

#include <expected>
#include <map>
#include <memory>
#include <string>

/// The command line: reads the settings and composes the parts of a process.
namespace idem::cli {

int run(int argc, char** argv);

/// The help of a flag that makes the result on stdout one JSON text.
inline constexpr const char* json_help = "print the result as JSON";

using Providers = std::map<std::string, std::shared_ptr<const workers::Provider>>;

struct GatewayOptions {
  std::string listen;
  std::string admin;  ///< Empty: no admin listener.
  /// For the clients' listener; without a certificate it serves plain HTTP.
  http::TlsContext::ServerFiles tls;
  std::string store;
  std::string store_id;  ///< The id that the store must have; empty: any.
  std::uint64_t store_cache_bytes = OpenOptions().cache_bytes;
  std::uint32_t store_shards = 0;        ///< 0: as the store has it.
  std::string spill_dir;                 ///< Never empty.
  std::vector<std::string> admin_hosts;  ///< Host names of the admin listener.
  admin::Links links{};
  admin::LoginSettings login;
  /// For the admin listener; without a certificate it serves plain HTTP.
  http::TlsContext::ServerFiles admin_tls;
  Millis evidence_grace = limits::evidence_grace_default;
  metrics::TenantLabel tenant_label = metrics::TenantLabel::digest;
  bool log_requests = false;
  tracing::TraceSettings traces{};
  bool core_dumps = false;
  bool migrate = false;
  std::vector<Secret> secrets;  ///< Newest first; empty: the store's own.
  EncryptionSettings encryption{};
  unsigned threads = 0;
  std::string log_format = "text";
  gateway::GatewaySettings settings;
  http::ServerStream::Options timers;
  std::size_t connections = limits::connections_default;
  std::size_t connections_per_address = limits::connections_per_address_default;
  std::vector<Destination> destinations{};
  Providers providers{};
};
/// The destinations' names, for the metrics.
std::vector<std::string> names_of(const std::vector<Destination>& destinations);

class SettingsSource;
/// Runs until SIGTERM or SIGINT; SIGHUP reads the settings again. The exit code.
int run_gateway(const SettingsSource& source);

/// The complaint about destinations for a store without an outbox.
inline std::string no_outbox() {
  return "destinations: this store has no outbox; " + stores_with_transactions() + " have one";
}

/// Runs sweeper, reaper, reconciler, relay and, if configured, the admin listener, without a
/// gateway, until SIGTERM or SIGINT. The exit code.
int run_worker(const SettingsSource& source);

/// The secret from a file of key material: limits::secret_file_bytes_min to ..._max bytes, and no
/// other user may read or change the file. The error names the file and never quotes its content.
std::expected<Secret, std::string> read_secret_file(const std::string& path);
/// Checks owner and mode of any other file with a secret in the same way.
std::expected<void, std::string> check_secret_file(const std::string& path);

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

/// "150ms", "30s", "5m", "24h", "30d", or "0"; whole numbers only.
std::expected<Millis, std::string> parse_duration(const std::string& text);
/// "512B", "64KiB", "1MiB".
std::expected<std::size_t, std::string> parse_size(const std::string& text);

}  // namespace idem::cli
