#pragma once

#include "admin/links.hpp"
#include "admin/login/login_settings.hpp"
#include "gateway/settings.hpp"
#include "http/server_stream.hpp"
#include "http/tls/tls.hpp"
#include "metrics/tenants.hpp"
#include "tracing/settings.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>
#include <idem/open_store.hpp>
#include <idem/relay.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace idem::workers {
struct Provider;
}

namespace idem::cli {

using Providers = std::map<std::string, std::shared_ptr<const workers::Provider>>;

/// What the settings of a gateway or worker say, parsed.
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

/// The complaint about destinations for a store without an outbox.
inline std::string no_outbox() {
  return "destinations: this store has no outbox; " + stores_with_transactions() + " have one";
}

}  // namespace idem::cli
