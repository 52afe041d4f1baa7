#pragma once

#include "cli/settings/caller_flags.hpp"
#include "cli/settings/route_settings.hpp"
#include "config/setting.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// One entry of `destinations`: a receiver of outbox messages.
struct DestinationGiven {
  config::Place place{};
  Given name{};
  Given url{};
  GivenList secret_files{};
  Given deduplicates{};
  Given timeout{"10s"};
  Given attempts{std::to_string(limits::delivery_attempts_default)};
  Given source{"/idem"};
  Given ca{};
};

/// One entry of `providers`: a service that knows whether an attempt ran, and how to ask it.
struct ProviderGiven {
  config::Place place{};
  Given name{};
  Given url{};
  Given auth_file{};
  Given ca{};
  Given timeout{"10s"};
  GivenList found{};
  GivenList failed{};
  GivenList not_there{};
  Given grace{"60s"};
  Given retry_first{"2s"};
  Given retry_max{"10m"};
  Given attempts{std::to_string(limits::reconcile_attempts_default)};
  Given found_status{"200"};
  Given failed_status{"402"};
  Given content_type{"application/json"};
  Given body{};
  GivenList headers{};
  Given event_signature{};
  GivenList event_secrets{};
  Given event_field{};
  Given event_prefix{};
  Given event_id{};
  Given event_operation{};
  Given event_key{};
  Given event_derived_key{};
  Given event_phase{};
  Given event_reference{};
  Given event_fence{};
  GivenList event_found{};
  GivenList event_failed{};
  Given event_body{};
  GivenList event_headers{};
};

/// The settings of `idem gateway` as texts before parsing. A new one is a member here, a row of
/// settings_of() and its use in build_options().
struct GatewayFlags {
  std::string folder{};  ///< That of the settings file; empty: the working directory.
  Given listen{"127.0.0.1:8080"};
  Given admin{};
  Given upstream{};
  Given tls_cert{};
  Given tls_key{};
  Given tls_client_ca{};
  Given upstream_ca{};
  Given upstream_verify{"true"};
  Given store{"sqlite:./idem.db"};
  Given store_cache{"256MiB"};
  Given store_shards{"0"};
  Given store_id{};
  Given migrate{"false"};
  CallerFlags caller{};
  GivenList admin_hosts{};
  Given trace_link{};
  Given upstream_link{};
  Given admin_token_file{};
  Given admin_tokens{};
  Given admin_probes{"loopback"};
  Given admin_identity_field{};
  Given admin_groups_field{};
  GivenList admin_proxies{};
  GivenList admin_roles{};
  Given admin_tls_cert{};
  Given admin_tls_key{};
  Given admin_client_ca{};
  Given approve_resolve{"1"};
  Given approve_release{"1"};
  Given approve_jobs{"1"};
  Given approve_discard{"1"};
  Given evidence_grace{"60s"};
  Given metrics_tenants{"digest"};
  Given log_requests{"false"};
  Given traces_url{};
  Given traces_sample{"parent"};
  Given traces_one_in{"10"};
  Given traces_service{"idem"};
  Given traces_header_file{};
  Given traces_ca{};
  GivenList search_requests{};
  GivenList search_answers{};
  Given core_dumps{"false"};
  GivenList key_headers{};
  Given key_syntax{"any"};
  Given key_scope{"operation"};
  GivenList secret_files{};
  GivenList async_secret_files{};
  GivenList encryption_secret_files{};
  Given encryption_accept_clear{"true"};
  Given encryption_key_per_scope{"false"};
  Given key_min_length{"1"};
  Given key_reject_pii{"false"};
  Given key_time{"ignored"};
  Given key_first_sent{"false"};
  Given key_forward{"keep"};
  Given connect_timeout{"2s"};
  Given keepalive_idle{"1s"};
  Given tunnel_idle{"10m"};
  RouteGiven rest = RouteGiven::initial();
  Given spill_dir{};
  Given head_timeout{"10s"};
  Given idle_timeout{"75s"};
  Given body_grace{"10s"};
  Given write_timeout{"30s"};
  Given quota_new_keys{"0"};
  Given quota_at_once{"0"};
  Given quota_keys{"0"};
  Given quota_bytes{"16GiB"};
  Given connections{std::to_string(limits::connections_default)};
  Given connections_per_address{std::to_string(limits::connections_per_address_default)};
  Given threads{"0"};
  Given log_format{"text"};
  std::vector<config::Node> routes{};
  std::vector<config::Node> destinations{};
  std::vector<config::Node> providers{};
};

/// The one table of settings: name in the file, flag, shape, place, help. The IDEM_* variable
/// follows from the flag. Slots point into `flags`.
std::vector<config::Setting> settings_of(GatewayFlags& flags);
/// The table of one entry of `destinations`.
std::vector<config::Setting> settings_of(DestinationGiven& destination);
/// The table of one entry of `providers`.
std::vector<config::Setting> settings_of(ProviderGiven& provider);

/// The entries of `routes`, each by its table.
std::vector<RouteGiven> read_routes(const std::vector<config::Node>& routes,
                                    Complaints& complaints);

std::vector<DestinationGiven> read_destinations(const std::vector<config::Node>& destinations,
                                                Complaints& complaints);

std::vector<ProviderGiven> read_providers(const std::vector<config::Node>& providers,
                                          Complaints& complaints);

/// The command that reads the settings. A worker serves no clients: it needs neither upstream nor
/// scope.
enum class Purpose : std::uint8_t { gateway, worker };

struct GatewayOptions;

/// Parses the texts. None: there are complaints.
std::optional<GatewayOptions> build_options(const GatewayFlags& flags, Purpose purpose,
                                            Complaints& complaints);
}  // namespace idem::cli
