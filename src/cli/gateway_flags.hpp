#pragma once

#include "cli/caller_flags.hpp"
#include "cli/commands.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace idem::cli {

/// The texts behind `idem gateway`'s flags, before they are understood.
struct GatewayFlags {
  std::string listen = "127.0.0.1:8080";
  std::string admin;
  std::string upstream;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string upstream_ca;
  std::string upstream_verify = "true";
  std::string store = "sqlite:./idem.db";
  CallerFlags caller;
  std::string preset = "ietf";
  std::string mode = "conflict";
  std::string wait_max = "30s";
  std::string require_key = "true";
  std::vector<std::string> key_headers;
  std::string key_syntax = "any";
  std::string key_scope = "operation";
  std::vector<std::string> secret_files;
  std::string upstream_timeout = "30s";
  std::string connect_timeout = "2s";
  std::string keepalive_idle = "1s";
  std::string lease = "60s";
  std::string retention = "24h";
  std::string tombstone = "30d";
  bool accept_rerun_after_expiry = false;
  std::string request_body_max = "1MiB";
  std::string spill_dir;
  std::string response_body_max = "1MiB";
  std::vector<std::string> replay_fields;
  std::string tunnel_idle = "10m";
  std::string dispatch_mark = "reserve";
  std::string head_timeout = "10s";
  std::string idle_timeout = "75s";
  std::string body_grace = "10s";
  std::string write_timeout = "30s";
  std::size_t connections = limits::connections_default;
  std::size_t connections_per_address = limits::connections_per_address_default;
  unsigned threads = 0;
  std::string log_format = "text";
  bool log_requests = false;
  std::vector<std::string> admin_hosts;
  std::string evidence_grace = "60s";
  std::string metrics_tenants = "digest";
  bool migrate = false;
};

/// Declares every flag with its IDEM_* variable.
void declare(CLI::App& command, GatewayFlags& flags);

/// Understands the flags; the error is a sentence that names the flag and says what to write.
std::expected<GatewayOptions, std::string> understand(const GatewayFlags& flags);

}  // namespace idem::cli
