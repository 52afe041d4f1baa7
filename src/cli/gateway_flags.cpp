#include "cli/gateway_flags.hpp"

#include "core/policy.hpp"
#include "http/head.hpp"

#include <idem/fingerprint.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace idem::cli {
namespace {

using Checked = std::expected<void, std::string>;

std::string node_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  return std::string(name) + "/" + std::to_string(::getpid());
}

std::string variable_of(std::string_view flag) {
  std::string name = "IDEM_";
  for (const char c : flag.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

Checked take_duration(std::string_view flag, const std::string& text, Millis& out) {
  const auto parsed = parse_duration(text);
  if (!parsed) return std::unexpected(std::string(flag) + ": " + parsed.error());
  out = *parsed;
  return {};
}

Checked take_size(std::string_view flag, const std::string& text, std::size_t& out) {
  const auto parsed = parse_size(text);
  if (!parsed) return std::unexpected(std::string(flag) + ": " + parsed.error());
  if (*parsed > limits::request_body_bytes_cap) {
    return std::unexpected(std::string(flag) + ": at most 64MiB");
  }
  out = *parsed;
  return {};
}

Checked take_tls(const GatewayFlags& flags, GatewayOptions& options) {
  options.tls = {flags.tls_cert, flags.tls_key, flags.tls_client_ca};
  if (flags.tls_cert.empty() != flags.tls_key.empty()) {
    return std::unexpected("--tls-cert and --tls-key belong together: give both files or neither");
  }
  if (!flags.tls_client_ca.empty() && flags.tls_cert.empty()) {
    return std::unexpected("--tls-client-ca needs --tls-cert and --tls-key");
  }
  const bool by_certificate = options.settings.scope.kind == gateway::ScopeSource::Kind::mtls;
  if (by_certificate && flags.tls_client_ca.empty()) {
    return std::unexpected(
        "--scope mtls needs --tls-client-ca FILE: whose client certificates are believed");
  }
  if (!options.settings.upstream.tls) {
    if (flags.upstream_ca.empty() && flags.upstream_verify == "true") return {};
    return std::unexpected("--upstream-ca and --upstream-verify need an https:// upstream");
  }
  auto context = http::TlsContext::for_client({flags.upstream_ca, flags.upstream_verify == "true"});
  if (!context) return std::unexpected("--upstream-ca " + context.error());
  options.settings.upstream_tls = std::move(*context);
  return {};
}

Checked take_key(const GatewayFlags& flags, gateway::GatewaySettings& settings) {
  if (!flags.key_headers.empty()) settings.key_headers = flags.key_headers;
  for (const auto& name : settings.key_headers) {
    if (!http::is_token(name))
      return std::unexpected("--key-header: \"" + name + "\" is no field name");
  }
  if (flags.key_scope == "tenant") settings.key_scope = gateway::KeyScope::tenant;
  if (flags.key_syntax == "structured") settings.key.syntax = KeySyntax::structured;
  if (flags.key_syntax == "bare") settings.key.syntax = KeySyntax::bare;
  return {};
}

Checked take_secrets(const GatewayFlags& flags, GatewayOptions& options) {
  if (flags.secret_files.size() > limits::secrets_max) {
    return std::unexpected("--secret-file: at most " + std::to_string(limits::secrets_max));
  }
  for (const auto& path : flags.secret_files) {
    const auto secret = read_secret_file(path);
    if (!secret) return std::unexpected("--secret-file " + secret.error());
    if (std::ranges::find(options.secrets, *secret) != options.secrets.end()) {
      return std::unexpected("--secret-file " + path + " holds a secret that was given before");
    }
    options.secrets.push_back(*secret);
  }
  return {};
}

Checked take_times(const GatewayFlags& flags, gateway::GatewaySettings& settings,
                   gateway::Route& rest) {
  const std::tuple<std::string_view, const std::string&, Millis&> all[] = {
      {"--upstream-timeout", flags.upstream_timeout, rest.upstream_timeout},
      {"--connect-timeout", flags.connect_timeout, settings.connect_timeout},
      {"--keepalive-idle", flags.keepalive_idle, settings.upstream_keep_alive_idle},
      {"--tunnel-idle", flags.tunnel_idle, settings.tunnel_idle},
      {"--lease", flags.lease, rest.lease},
      {"--retention", flags.retention, rest.retention},
      {"--tombstone", flags.tombstone, rest.tombstone}};
  for (const auto& [flag, text, out] : all) {
    if (const auto taken = take_duration(flag, text, out); !taken) return taken;
  }
  const bool zero = rest.upstream_timeout <= Millis(0) || settings.connect_timeout <= Millis(0) ||
                    rest.retention <= Millis(0);
  if (zero)
    return std::unexpected("--upstream-timeout, --connect-timeout and --retention must be above 0");
  if (settings.tunnel_idle <= Millis(0)) return std::unexpected("--tunnel-idle must be above 0");
  if (rest.lease <= rest.upstream_timeout + gateway::lease_margin(rest.lease)) {
    return std::unexpected(
        "--lease " + flags.lease + " must exceed --upstream-timeout " + flags.upstream_timeout +
        " by 5s (by a quarter of itself when shorter than 20s), so that no attempt "
        "outlives its lease");
  }
  if (rest.tombstone <= Millis(0) && !flags.accept_rerun_after_expiry) {
    return std::unexpected(
        "--tombstone 0s lets a key run again after its retention; add "
        "--accept-rerun-after-expiry if that is meant");
  }
  return {};
}

Checked take_replay_fields(const GatewayFlags& flags, gateway::Route& rest) {
  if (flags.replay_fields.size() > limits::replay_fields_max) {
    return std::unexpected("--replay-field: at most " + std::to_string(limits::replay_fields_max));
  }
  for (const auto& name : flags.replay_fields) {
    if (!http::is_token(name)) {
      return std::unexpected("--replay-field: \"" + name + "\" is no field name");
    }
    if (!is_withheld(name) && !may_store(name)) {
      return std::unexpected("--replay-field " + name +
                             ": this field belongs to one connection or to the gateway and cannot "
                             "be replayed");
    }
  }
  rest.replay_fields = flags.replay_fields;
  return {};
}

/// Beside the SQLite file: that directory is writable and no memory file system.
std::string spill_dir_of(const GatewayFlags& flags) {
  static constexpr std::string_view sqlite = "sqlite:";
  if (!flags.spill_dir.empty()) return flags.spill_dir;
  if (flags.store.starts_with(sqlite)) {
    const auto parent = std::filesystem::path(flags.store.substr(sqlite.size())).parent_path();
    return parent.empty() ? "." : parent.string();
  }
  const char* const chosen = std::getenv("TMPDIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
}

/// How long and how many: clients that are slow on purpose are held off by these.
Checked take_client_limits(const GatewayFlags& flags, GatewayOptions& options) {
  const std::tuple<std::string_view, const std::string&, Millis&, Millis> all[] = {
      {"--head-timeout", flags.head_timeout, options.timers.head_time, limits::head_time_cap},
      {"--idle-timeout", flags.idle_timeout, options.timers.idle_time, limits::keep_alive_idle_cap},
      {"--body-grace", flags.body_grace, options.timers.body_grace, limits::body_grace_cap},
      {"--write-timeout", flags.write_timeout, options.timers.write_time, limits::write_time_cap}};
  for (const auto& [flag, text, out, cap] : all) {
    if (const auto taken = take_duration(flag, text, out); !taken) return taken;
    if (out > Millis(0) && out <= cap) continue;
    return std::unexpected(std::string(flag) + " " + text + " must be above 0 and at most " +
                           std::to_string(cap / Millis(1000)) + "s");
  }
  options.connections = flags.connections;
  options.connections_per_address = flags.connections_per_address;
  return {};
}

Checked check_words(const GatewayFlags& flags) {
  if (flags.preset != "ietf" && flags.preset != "stripe" && flags.preset != "lenient") {
    return std::unexpected("--preset \"" + flags.preset +
                           "\" is none; write ietf, stripe or lenient");
  }
  if (flags.mode == "async") {
    return std::unexpected("--mode async is not served yet; this version has conflict and wait");
  }
  return {};
}

Checked take_wait(const GatewayFlags& flags, gateway::Route& rest) {
  if (flags.mode == "wait") rest.mode = gateway::Mode::wait;
  if (const auto taken = take_duration("--wait-max", flags.wait_max, rest.wait_max); !taken) {
    return taken;
  }
  if (rest.wait_max > limits::wait_cap) return std::unexpected("--wait-max: at most 5m");
  if (rest.mode == gateway::Mode::wait && rest.wait_max == Millis(0)) {
    return std::unexpected("--mode wait needs a --wait-max above 0s");
  }
  return {};
}

}  // namespace

void declare(CLI::App& command, GatewayFlags& f) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return command.add_option(name, value, text)->envname(variable_of(name));
  };
  add("--listen", f.listen, "HOST:PORT for clients; port 0 takes a free one")
      ->capture_default_str();
  add("--admin", f.admin,
      "HOST:PORT for the operator: /livez, /readyz, /metrics, /v1/keys; none by default");
  add("--admin-host", f.admin_hosts,
      "a name besides loopback under which --admin is addressed; repeatable")
      ->allow_extra_args(false);
  add("--evidence-grace", f.evidence_grace,
      "how much later than the lease's end an operator's \"nothing there\" must be observed")
      ->capture_default_str();
  add("--metrics-tenants", f.metrics_tenants,
      "how tenants are called in metrics; off counts all as one")
      ->check(CLI::IsMember({"digest", "name", "off"}))
      ->capture_default_str();
  add("--tls-cert", f.tls_cert, "PEM file: the certificate and its chain; read again on SIGHUP");
  add("--tls-key", f.tls_key, "PEM file: its key, without a passphrase");
  add("--tls-client-ca", f.tls_client_ca, "PEM file: who signs the certificates of clients");
  add("--upstream", f.upstream, "http(s)://HOST[:PORT] of the API behind the gateway")->required();
  add("--upstream-ca", f.upstream_ca,
      "PEM file: who signs the upstream's; by default the system's");
  add("--upstream-verify", f.upstream_verify,
      "the upstream's certificate must be good, and its own")
      ->check(CLI::IsMember({"true", "false"}))
      ->capture_default_str();
  add("--store", f.store, "sqlite:PATH or memory:")->capture_default_str();
  declare_caller(command, f.caller);
  add("--preset", f.preset, "what an upstream's answer means")
      ->check(CLI::IsMember({"ietf", "stripe", "lenient"}))
      ->capture_default_str();
  add("--mode", f.mode, "what a duplicate hears while the first runs")
      ->check(CLI::IsMember({"conflict", "wait", "async"}))
      ->capture_default_str();
  add("--wait-max", f.wait_max,
      "how long a duplicate is kept waiting, by the mode or by Prefer: wait=N; 0s: never, at most "
      "5m")
      ->capture_default_str();
  add("--require-key", f.require_key, "POST and PATCH need a key")
      ->check(CLI::IsMember({"true", "false"}))
      ->capture_default_str();
  add("--key-header", f.key_headers, "accepted field name, repeatable; Idempotency-Key by default")
      ->allow_extra_args(false);
  add("--key-syntax", f.key_syntax, "accepted spelling of a key")
      ->check(CLI::IsMember({"any", "structured", "bare"}))
      ->capture_default_str();
  add("--key-scope", f.key_scope,
      "operation: a key is unique in its scope and operation; tenant: in its scope, so that reuse "
      "on "
      "another operation is refused")
      ->check(CLI::IsMember({"operation", "tenant"}))
      ->capture_default_str();
  add("--secret-file", f.secret_files,
      "key material for the digests of keys and requests, in place of the store's own; repeatable, "
      "newest first: older ones are for the records that were made under them")
      ->allow_extra_args(false);
  add("--upstream-timeout", f.upstream_timeout, "from the first byte sent to the whole answer")
      ->capture_default_str();
  add("--connect-timeout", f.connect_timeout, "for a new upstream connection")
      ->capture_default_str();
  add("--keepalive-idle", f.keepalive_idle, "how long an upstream connection is kept; 0s: never")
      ->capture_default_str();
  add("--lease", f.lease, "how long an attempt holds its record without renewal")
      ->capture_default_str();
  add("--retention", f.retention, "how long an answer is replayed")->capture_default_str();
  add("--tombstone", f.tombstone, "how long an expired key is refused after that")
      ->capture_default_str();
  command.add_flag("--accept-rerun-after-expiry", f.accept_rerun_after_expiry,
                   "needed for --tombstone 0s");
  add("--request-body-max", f.request_body_max, "largest keyed request body")
      ->capture_default_str();
  add("--spill-dir", f.spill_dir,
      "where keyed bodies above 64KiB lie while they are served, as files without a name; by "
      "default "
      "the store's directory");
  add("--response-body-max", f.response_body_max, "largest answer that is stored")
      ->capture_default_str();
  add("--replay-field", f.replay_fields,
      "a field such as Set-Cookie that is stored and replayed although it is not by default; "
      "repeatable")
      ->allow_extra_args(false);
  add("--tunnel-idle", f.tunnel_idle, "how long an upgraded connection may be silent both ways")
      ->capture_default_str();
  add("--dispatch-mark", f.dispatch_mark,
      "reserve: one durable write before dispatch; separate: a second one just before the first "
      "byte")
      ->check(CLI::IsMember({"reserve", "separate"}))
      ->capture_default_str();
  add("--head-timeout", f.head_timeout, "for a request's head, from its first byte; at most 60s")
      ->capture_default_str();
  add("--idle-timeout", f.idle_timeout, "how long a client's idle connection is kept; at most 1h")
      ->capture_default_str();
  add("--body-grace", f.body_grace, "for a request's body besides 1 KiB/s; at most 60s")
      ->capture_default_str();
  add("--write-timeout", f.write_timeout, "for each 64 KiB that a client takes; at most 10m")
      ->capture_default_str();
  add("--connections", f.connections, "client connections at the same time; more are closed")
      ->check(CLI::Range(std::size_t{1}, limits::connections_cap))
      ->capture_default_str();
  add("--connections-per-address", f.connections_per_address, "of one IPv4 address or IPv6 /64")
      ->check(CLI::Range(std::size_t{1}, limits::connections_cap))
      ->capture_default_str();
  add("--threads", f.threads, "event loops; by default one per core")->check(CLI::Range(1, 256));
  add("--log-format", f.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command.add_flag("--log-requests", f.log_requests,
                   "a line for each keyed request: ref, operation, outcome, times");
  command.add_flag("--migrate", f.migrate, "upgrade the store's schema if it is older");
}

std::expected<GatewayOptions, std::string> understand(const GatewayFlags& flags) {
  GatewayOptions options;
  options.listen = flags.listen;
  options.admin = flags.admin;
  options.store = flags.store;
  options.spill_dir = spill_dir_of(flags);
  options.migrate = flags.migrate;
  options.threads = flags.threads;
  options.log_format = flags.log_format;
  options.log_requests = flags.log_requests;
  options.admin_hosts = flags.admin_hosts;
  if (flags.metrics_tenants == "off") options.tenant_label = metrics::TenantLabel::off;
  if (flags.metrics_tenants == "name") options.tenant_label = metrics::TenantLabel::name;
  auto& settings = options.settings;
  auto upstream = http::parse_upstream_url(flags.upstream);
  if (!upstream) return std::unexpected("--upstream: " + upstream.error());
  settings.upstream = std::move(*upstream);
  settings.owner = node_name();
  settings.via_name = "idem-" + to_hex(random_token().bytes).substr(0, 12);
  gateway::Route rest;
  rest.separate_dispatch_mark = flags.dispatch_mark == "separate";
  rest.require_key = flags.require_key == "true";
  if (flags.preset == "stripe") rest.answers.preset = Preset::stripe;
  if (flags.preset == "lenient") rest.answers.preset = Preset::lenient;
  for (const Checked& checked :
       {check_words(flags), take_wait(flags, rest), take_caller(flags.caller, settings),
        take_tls(flags, options), take_key(flags, settings), take_secrets(flags, options),
        take_times(flags, settings, rest), take_client_limits(flags, options),
        take_duration("--evidence-grace", flags.evidence_grace, options.evidence_grace),
        take_replay_fields(flags, rest),
        take_size("--request-body-max", flags.request_body_max, rest.request_body_bytes_max),
        take_size("--response-body-max", flags.response_body_max, rest.response_body_bytes_max)}) {
    if (!checked) return std::unexpected(checked.error());
  }
  settings.routes = gateway::RouteTable({}, std::move(rest));
  return options;
}

}  // namespace idem::cli
