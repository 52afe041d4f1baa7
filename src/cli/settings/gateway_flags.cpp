#include "cli/settings/gateway_flags.hpp"

#include "cli/settings/addresses.hpp"
#include "cli/settings/parse.hpp"
#include "cli/settings/secret_file.hpp"
#include "config/words.hpp"
#include "core/bytes/ascii.hpp"
#include "gateway/auth/scope.hpp"
#include "http/head.hpp"
#include "http/server.hpp"
#include "store/known_kinds.hpp"

#include <idem/fingerprint.hpp>
#include <idem/open_store.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace idem::cli {
namespace {

using config::shown;

std::string node_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  return std::string(name) + "/" + std::to_string(::getpid());
}

template <class Number>
void parse_number(const Given& given, Number& out) {
  out = static_cast<Number>(std::strtoull(given.text.c_str(), nullptr, 10));
}

void parse_upstream(const GatewayFlags& flags, gateway::GatewaySettings& settings,
                    Complaints& complaints) {
  if (flags.upstream.text.empty()) {
    if (flags.upstream.given) return;  // config::check() complains about an empty text.
    return complaints.add(flags.upstream.place,
                          "there is no upstream; write --upstream http://HOST:PORT, or in the file "
                          "upstream: {url: \"http://HOST:PORT\"}, and name it with --config FILE");
  }
  auto upstream = http::parse_upstream_url(flags.upstream.text);
  if (!upstream) {
    return complaints.add(flags.upstream.place, config::without_quoted_password(upstream.error()));
  }
  settings.upstream = std::move(*upstream);
}

void parse_tls(const GatewayFlags& flags, Purpose purpose, GatewayOptions& options,
               Complaints& complaints) {
  const auto& client_ca = flags.tls_client_ca;
  parse_server_files("tls", flags.tls_cert, flags.tls_key, client_ca, options.tls, complaints);
  // A worker has no clients; it names the scope only because the store knows it.
  const bool reads_certificates = purpose == Purpose::gateway &&
                                  options.settings.scope.kind == gateway::ScopeSource::Kind::mtls;
  if (reads_certificates && client_ca.text.empty()) {
    complaints.add(flags.caller.scope.place,
                   "scope mtls needs --tls-client-ca FILE (tls.client_ca): the CA of "
                   "clients' certificates");
  }
}

void parse_upstream_tls(const GatewayFlags& flags, gateway::GatewaySettings& settings,
                        Complaints& complaints) {
  const auto& ca = flags.upstream_ca;
  const bool verify = is_true(flags.upstream_verify);
  if (!settings.upstream.tls) {
    if (ca.text.empty() && verify) return;
    return complaints.add(ca.text.empty() ? flags.upstream_verify.place : ca.place,
                          "--upstream-ca and --upstream-verify (upstream.ca and upstream.verify) "
                          "need an https:// upstream");
  }
  auto context = http::TlsContext::for_client({ca.text, verify});
  if (!context) return complaints.add(ca.place, context.error());
  settings.upstream_tls = std::move(*context);
}

/// keep, strip or rename:NAME.
void parse_key_forward(const Given& given, gateway::KeyForward& out, Complaints& complaints) {
  static constexpr std::string_view rename = "rename:";
  using Kind = gateway::KeyForward::Kind;
  if (given.text == "keep" || given.text.empty()) return;
  if (given.text == "strip") {
    out.kind = Kind::strip;
    return;
  }
  const std::string name =
      given.text.starts_with(rename) ? given.text.substr(rename.size()) : std::string{};
  if (!http::is_token(name)) {
    return complaints.add(given.place, shown(given.text) +
                                           " is no way to forward a key; write keep, strip or "
                                           "rename:NAME");
  }
  out = {Kind::rename, name};
}

/// Checks the names of the key's fields, as clients send them and as the upstream receives it.
void check_key_fields(const GatewayFlags& flags, const gateway::GatewaySettings& settings,
                      Complaints& complaints) {
  const auto check = [&](const std::string& name, const config::Place& place) {
    if (!gateway::may_carry_key(name)) {
      complaints.add(place, shown(name) +
                                " has another meaning on the way to the upstream; "
                                "write another name");
    } else if (settings.scope.kind == gateway::ScopeSource::Kind::header &&
               http::same_name(name, settings.scope.name)) {
      complaints.add(place, shown(name) + " carries the scope; write another name for the key");
    }
  };
  for (const auto& header : flags.key_headers.items) {
    if (http::is_token(header.text)) check(header.text, header.place);
  }
  if (!settings.key_forward.name.empty()) {
    check(settings.key_forward.name, flags.key_forward.place);
  }
}

void parse_key(const GatewayFlags& flags, gateway::GatewaySettings& settings,
               Complaints& complaints) {
  if (!flags.key_headers.items.empty()) {
    parse_field_names(flags.key_headers, settings.key_headers, complaints);
  } else if (flags.key_headers.given) {
    complaints.add(flags.key_headers.place,
                   "without any field no request has a key; leave headers out for Idempotency-Key");
  }
  if (flags.key_scope.text == "tenant") settings.key_scope = gateway::KeyScope::tenant;
  if (flags.key_syntax.text == "structured") settings.key.syntax = KeySyntax::structured;
  if (flags.key_syntax.text == "bare") settings.key.syntax = KeySyntax::bare;
  parse_number(flags.key_min_length, settings.key.bytes_min);
  settings.key.reject_pii = is_true(flags.key_reject_pii);
  if (flags.key_time.text == "checked") settings.key_time = KeyTimeRule::checked;
  if (flags.key_time.text == "required") settings.key_time = KeyTimeRule::required;
  settings.honours_first_sent = is_true(flags.key_first_sent);
  parse_key_forward(flags.key_forward, settings.key_forward, complaints);
}

/// The time in a key is that of a client's clock, which may be ahead by the skew. A record must
/// live longer than that, or it is gone before its key counts as old.
void check_key_times(const GatewayFlags& flags, const gateway::GatewaySettings& settings,
                     Complaints& complaints) {
  const bool reads_keys = settings.key_time != KeyTimeRule::ignored;
  if (!reads_keys && !settings.honours_first_sent) return;
  for (const auto& route : settings.routes.all()) {
    if (route.retention + route.tombstone >= 2 * limits::key_time_skew) continue;
    return complaints.add(
        (reads_keys ? flags.key_time : flags.key_first_sent).place,
        "the time of a key cannot be checked if retention and tombstone together are below " +
            to_text(2 * limits::key_time_skew) + ", as of " +
            (route.name.empty() ? "a route without a name" : "route " + route.name));
  }
}

void parse_secrets(const GivenList& files, std::vector<Secret>& out, Complaints& complaints) {
  if (files.items.size() > limits::secrets_max) {
    return complaints.add(files.place, "at most " + std::to_string(limits::secrets_max) +
                                           " secrets can be live at one time");
  }
  for (const auto& file : files.items) {
    const auto secret = read_secret_file(file.text);
    if (!secret) {
      complaints.add(file.place, secret.error());
    } else if (std::ranges::find(out, *secret) != out.end()) {
      complaints.add(file.place, file.text + " holds the same secret as an earlier file");
    } else {
      out.push_back(*secret);
    }
  }
}

void parse_quota(const GatewayFlags& flags, std::optional<Quota>& out, Complaints& complaints) {
  Quota quota;
  std::uint32_t rate = 0;
  std::uint32_t at_once = 0;
  parse_number(flags.quota_new_keys, rate);
  parse_number(flags.quota_at_once, at_once);
  parse_number(flags.quota_keys, quota.active_keys);
  parse_given_size(flags.quota_bytes, limits::stored_bytes_cap, quota.stored_bytes, complaints);
  if (rate == 0 && at_once != 0) {
    complaints.add(flags.quota_at_once.place,
                   "new_keys_at_once needs a rate; write "
                   "--quota-new-keys-per-second too, or in the file quotas: {new_keys_per_second: "
                   "100}");
  }
  if (rate != 0) {
    quota.new_key_interval = std::chrono::microseconds(1'000'000 / rate);
    quota.new_keys_at_once = at_once != 0 ? at_once : rate;
  }
  if (quota != Quota{}) out = quota;
}

void parse_encryption(const GatewayFlags& flags, EncryptionSettings& out, Complaints& complaints) {
  parse_secrets(flags.encryption_secret_files, out.secrets, complaints);
  out.accept_clear = is_true(flags.encryption_accept_clear);
  if (!out.accept_clear && flags.encryption_secret_files.items.empty()) {
    complaints.add(flags.encryption_accept_clear.place,
                   "without encryption.secret_files every answer lies in clear, and none could be "
                   "replayed; write --encryption-secret-file FILE, or in the file encryption: "
                   "{secret_files: [FILE]}");
  }
  out.key_per_scope = is_true(flags.encryption_key_per_scope);
  if (out.key_per_scope && flags.encryption_secret_files.items.empty()) {
    complaints.add(flags.encryption_key_per_scope.place,
                   "a scope's key lies in the store under a secret, and there is none; write "
                   "--encryption-secret-file FILE, or in the file encryption: {secret_files: "
                   "[FILE]}");
  }
}

/// Credentials in stored requests must be sealed.
void check_kept(const GivenList& kept, const GatewayFlags& flags, Complaints& complaints) {
  if (kept.items.empty() || !flags.async_secret_files.items.empty()) return;
  complaints.add(kept.place,
                 "kept fields of a request must be sealed, and there is no secret for that; write "
                 "--async-secret-file FILE, or in the file async: {secret_files: [FILE]}");
}

void parse_admin(const GatewayFlags& flags, GatewayOptions& options, Complaints& complaints) {
  options.admin = flags.admin.text;
  check_admin_hosts(flags.admin_hosts, complaints);
  for (const auto& host : flags.admin_hosts.items) options.admin_hosts.push_back(host.text);
  check_link(flags.trace_link, admin::Links::trace_place, complaints);
  check_link(flags.upstream_link, admin::Links::upstream_place, complaints);
  options.links = {.trace = flags.trace_link.text, .upstream = flags.upstream_link.text};
  parse_given_duration(flags.evidence_grace, options.evidence_grace, complaints);
  if (flags.metrics_tenants.text == "none") options.tenant_label = metrics::TenantLabel::off;
  if (flags.metrics_tenants.text == "name") options.tenant_label = metrics::TenantLabel::name;
  options.log_requests = is_true(flags.log_requests);
  options.core_dumps = is_true(flags.core_dumps);
  parse_login(flags, options, complaints);
}

struct Timing {
  const Given& given;
  Millis& out;
  Millis most;
};

void parse_timings(const GatewayFlags& flags, GatewayOptions& options, Complaints& complaints) {
  auto& settings = options.settings;
  auto& timers = options.timers;
  const Timing all[] = {{flags.connect_timeout, settings.connect_timeout, limits::duration_max},
                        {flags.tunnel_idle, settings.tunnel_idle, limits::duration_max},
                        {flags.head_timeout, timers.head_time, limits::head_time_cap},
                        {flags.idle_timeout, timers.idle_time, limits::keep_alive_idle_cap},
                        {flags.body_grace, timers.body_grace, limits::body_grace_cap},
                        {flags.write_timeout, timers.write_time, limits::write_time_cap}};
  for (const auto& [given, out, most] : all) {
    if (!parse_given_duration(given, out, complaints)) continue;
    if (out > Millis(0) && out <= most) continue;
    const bool bounded = most < limits::duration_max;
    complaints.add(given.place, shown(given.text) + " is out of range; write more than 0" +
                                    (bounded ? " and at most " + to_text(most) : ""));
  }
  parse_given_duration(flags.keepalive_idle, settings.upstream_keep_alive_idle, complaints);
}

/// By default beside a store on the disk: that directory is writable and no memory file system.
std::string spill_dir_of(const GatewayFlags& flags) {
  if (!flags.spill_dir.text.empty()) return flags.spill_dir.text;
  if (const auto path = path_in(flags.store.text)) {
    const auto parent = std::filesystem::path(*path).parent_path();
    return parent.empty() ? "." : parent.string();
  }
  const char* const chosen = std::getenv("TMPDIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
}

bool is_store_id(std::string_view text) {
  static constexpr std::string_view shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::ranges::equal(
      text, shape, [](char c, char of) { return of == '-' ? c == '-' : hex_value(c) >= 0; });
}

void parse_process(const GatewayFlags& flags, GatewayOptions& options, Complaints& complaints) {
  if (!flags.store.text.empty()) {
    const auto store = check_store_url(flags.store.text);
    if (!store) complaints.add(flags.store.place, store.error());
  }
  options.listen = flags.listen.text;
  options.store = flags.store.text;
  options.store_id = lower_case(flags.store_id.text);  // As stores have it.
  if (!options.store_id.empty() && !is_store_id(options.store_id)) {
    complaints.add(flags.store_id.place,
                   shown(options.store_id) +
                       " is no store's id; write the store_id from the log of the "
                       "start, 8-4-4-4-12 hexadecimal digits");
  }
  options.spill_dir = spill_dir_of(flags);
  options.migrate = is_true(flags.migrate);
  parse_number(flags.threads, options.threads);
  parse_number(flags.store_shards, options.store_shards);
  if (parse_given_size(flags.store_cache, store_cache_bytes_max, options.store_cache_bytes,
                       complaints) &&
      options.store_cache_bytes < store_cache_bytes_min) {
    complaints.add(flags.store_cache.place,
                   shown(flags.store_cache.text) + " is too little; write at least 1MiB");
  }
  options.log_format = flags.log_format.text;
  parse_number(flags.connections, options.connections);
  parse_number(flags.connections_per_address, options.connections_per_address);
  options.settings.owner = node_name();
  options.settings.via_name = "idem-" + to_hex(random_token().bytes).substr(0, 12);
}

/// By the URL, so that `idem config check` finds it too.
void check_outbox(const Given& store, const std::vector<DestinationGiven>& destinations,
                  Complaints& complaints) {
  if (destinations.empty() || !check_store_url(store.text)) return;
  if (!has_transactions(store.text)) complaints.add(destinations.front().place, no_outbox());
}

}  // namespace

std::optional<GatewayOptions> build_options(const GatewayFlags& flags, Purpose purpose,
                                            Complaints& complaints) {
  GatewayOptions options;
  auto& settings = options.settings;
  parse_process(flags, options, complaints);
  check_addresses(flags, purpose, complaints);
  const bool serves = purpose == Purpose::gateway;
  if (serves || flags.upstream.given) parse_upstream(flags, settings, complaints);
  if (serves || flags.caller.scope.given) parse_caller(flags.caller, settings, complaints);
  const auto destinations = read_destinations(flags.destinations, complaints);
  options.destinations = parse_destinations(destinations, complaints);
  check_outbox(flags.store, destinations, complaints);
  const auto providers = read_providers(flags.providers, complaints);
  // Two scopes may have the same key.
  const bool has_scopes = settings.scope.kind != gateway::ScopeSource::Kind::fixed;
  options.providers = parse_providers(providers, has_scopes, complaints);
  const bool keys_are_shared = has_scopes || flags.key_scope.text != "tenant";
  settings.event_sources = parse_event_sources(providers, keys_are_shared, complaints);
  parse_admin(flags, options, complaints);
  parse_traces(flags, options.traces, complaints);
  parse_search(flags, settings.search, complaints);
  parse_tls(flags, purpose, options, complaints);
  parse_upstream_tls(flags, settings, complaints);
  parse_key(flags, settings, complaints);
  parse_secrets(flags.secret_files, options.secrets, complaints);
  parse_secrets(flags.async_secret_files, settings.async_secrets, complaints);
  parse_encryption(flags, options.encryption, complaints);
  check_key_fields(flags, settings, complaints);
  parse_timings(flags, options, complaints);
  parse_quota(flags, settings.quota, complaints);
  gateway::Route rest;
  parse_route(flags.rest, rest, complaints);
  const auto given = read_routes(flags.routes, complaints);
  if (!serves) check_worker_routes(given, complaints);
  auto routes = parse_routes(given, rest, complaints);
  check_kept(flags.rest.list("async.keep_headers"), flags, complaints);
  for (const auto& route : given) check_kept(route.list("async.keep_headers"), flags, complaints);
  parse_reconcile(given, options.providers, routes, complaints);
  if (!complaints.empty()) return std::nullopt;
  settings.routes = gateway::RouteTable(std::move(routes), std::move(rest));
  check_key_times(flags, settings, complaints);
  if (!complaints.empty()) return std::nullopt;
  return options;
}

}  // namespace idem::cli
