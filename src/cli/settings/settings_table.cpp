#include "cli/settings/gateway_flags.hpp"

#include "cli/settings/paths.hpp"

#include <idem/job_limits.hpp>
#include <idem/open_store.hpp>
#include <idem/worker_limits.hpp>

namespace idem::cli {
namespace setting_rows {
namespace {

using config::duration;
using config::number;
using config::one_of;
using config::path;
using config::paths;
using config::Setting;
using config::size;
using config::text;
using config::texts;
using config::truth;
constexpr auto live = config::Change::live;
constexpr auto restart = config::Change::restart;
constexpr auto gateways = config::Role::gateway;
constexpr auto both = config::Role::gateway_and_worker;

using Table = std::vector<Setting>;

// One line a setting: {path in the file, flag, shape, slot, help, how it changes, whose it
// is}. A reload applies changes of those marked `live`; a worker refuses those marked `gateways`.
Table process_settings(GatewayFlags& f) {
  return {
      {"listen", "--listen", text, &f.listen, "HOST:PORT for clients; port 0: any free port",
       restart, gateways},
      {"admin", "--admin", text, &f.admin,
       "HOST:PORT for operators: /livez, /readyz, /metrics, /v1/...; by default there is no such "
       "listener"},
      {"admin_hosts", "--admin-host", texts, &f.admin_hosts,
       "host names of the admin listener, besides loopback"},
      {"links.trace", "--trace-link", text, &f.trace_link,
       "address of a trace's page, with {trace_id} in it: the console links to it"},
      {"links.upstream", "--upstream-link", text, &f.upstream_link,
       "address of the page that the API or its provider has about one piece of work, with "
       "{reference} in it, the upstream's reference: the console links to it"},
      {"admin_token_file", "--admin-token-file", path, &f.admin_token_file,
       "file in which the process puts an operator's token when no other login is configured; by "
       "default PATH.admin-token beside a store on the disk, else idem.admin-token beside the "
       "settings"},
      {"admin_tokens", "--admin-tokens", path, &f.admin_tokens,
       "file with digests of tokens, written by idem admin token; by default PATH.admin-tokens "
       "beside a store on the disk, else idem.admin-tokens beside the settings"},
      {"admin_probes", "--admin-probes", one_of("loopback|everywhere|nowhere"), &f.admin_probes,
       "which clients may ask /livez, /readyz and /metrics without a login"},
      {"admin_identity.field", "--admin-identity-field", text, &f.admin_identity_field,
       "header field in which a trusted proxy names its user"},
      {"admin_identity.groups_field", "--admin-groups-field", text, &f.admin_groups_field,
       "header field in which that proxy names the user's groups, separated by commas"},
      {"admin_identity.trusted_proxies", "--admin-trusted-proxy", texts, &f.admin_proxies,
       "networks of those proxies, such as 192.0.2.7/32"},
      {"admin_identity.roles", "--admin-role", texts, &f.admin_roles,
       "ROLE=NAME of a proxy's user, ROLE=group:NAME of its group, ROLE=subject:NAME or "
       "ROLE=uri:URI of a certificate's holder, or ROLE=*; the highest role (viewer, support, "
       "operator) counts"},
      {"admin_tls.cert", "--admin-tls-cert", path, &f.admin_tls_cert,
       "PEM file: the certificate of the admin listener and its chain; a gateway reads it again on "
       "SIGHUP"},
      {"admin_tls.key", "--admin-tls-key", path, &f.admin_tls_key,
       "PEM file: its key, without a passphrase"},
      {"admin_tls.client_ca", "--admin-client-ca", path, &f.admin_client_ca,
       "PEM file: the CA of operators' certificates; use one that signs no others"},
      {"approvals.resolve", "--approvals-resolve", number(1, limits::approvals_needed_max),
       &f.approve_resolve,
       "how many people, each with a login, must approve that a record is settled by evidence; "
       "more than 1 needs admin_tokens, admin_identity or admin_tls.client_ca. Give every process "
       "of the store with an admin listener the same: one without approvals carries an order out "
       "at once"},
      {"approvals.release", "--approvals-release", number(1, limits::approvals_needed_max),
       &f.approve_release, "the same for the release of a stored 5xx"},
      {"approvals.jobs", "--approvals-jobs", number(1, limits::approvals_needed_max),
       &f.approve_jobs,
       "the same for the beginning of a job; a job never needs fewer than each of its decisions"},
      {"approvals.discard", "--approvals-discard", number(1, limits::approvals_needed_max),
       &f.approve_discard, "the same for the discard of a dead letter"},
      {"evidence_grace", "--evidence-grace", duration, &f.evidence_grace,
       "how long after the lease's end an operator must observe that nothing is there; give "
       "every process of the store with an admin listener the same"},
      {"metrics_tenants", "--metrics-tenants", one_of("digest|name|none"), &f.metrics_tenants,
       "the label of a tenant in metrics; none: all tenants count as one"},
  };
}

Table connection_settings(GatewayFlags& f) {
  return {
      {"tls.cert", "--tls-cert", path, &f.tls_cert,
       "PEM file: the certificate and its chain; read again on SIGHUP", restart, gateways},
      {"tls.key", "--tls-key", path, &f.tls_key, "PEM file: its key, without a passphrase", restart,
       gateways},
      {"tls.client_ca", "--tls-client-ca", path, &f.tls_client_ca,
       "PEM file: the CA of clients' certificates", restart, gateways},
      {"upstream.url", "--upstream", text, &f.upstream,
       "http(s)://HOST[:PORT] of the API behind the gateway", restart, gateways},
      {"upstream.ca", "--upstream-ca", path, &f.upstream_ca,
       "PEM file: the CA of the upstream's certificate; by default the system's", restart,
       gateways},
      {"upstream.verify", "--upstream-verify", truth, &f.upstream_verify,
       "the upstream's certificate must be valid and match its host", restart, gateways},
      {"upstream.connect_timeout", "--connect-timeout", duration, &f.connect_timeout,
       "time for a new upstream connection, with the look-up of its name, all addresses and TLS",
       restart, gateways},
      {"upstream.keepalive_idle", "--keepalive-idle", duration, &f.keepalive_idle,
       "how long an upstream connection is kept; 0s: never", restart, gateways},
      {"upstream.tunnel_idle", "--tunnel-idle", duration, &f.tunnel_idle,
       "how long an upgraded connection may be silent both ways", live, gateways},
  };
}

Table trace_settings(GatewayFlags& f) {
  return {
      {"traces.url", "--traces", text, &f.traces_url,
       "http(s)://HOST[:PORT] of a collector that accepts spans by OTLP/HTTP in JSON; a URL "
       "without "
       "a path gets /v1/traces. Without it nothing is traced",
       restart, gateways},
      {"traces.sample", "--traces-sample", one_of("parent|ratio"), &f.traces_sample,
       "parent: a request with a traceparent is recorded if its caller recorded it, and one_in "
       "decides about the others; ratio: one_in decides about all",
       restart, gateways},
      {"traces.one_in", "--traces-one-in", number(1, 1'000'000'000), &f.traces_one_in,
       "records one in so many requests; 1: each", restart, gateways},
      {"traces.service", "--traces-service", text, &f.traces_service, "service.name of the spans",
       restart, gateways},
      {"traces.header_file", "--traces-header-file", path, &f.traces_header_file,
       "file with one header field for the collector, such as Authorization: Bearer TOKEN", restart,
       gateways},
      {"traces.ca", "--traces-ca", path, &f.traces_ca,
       "PEM file: the CA of the collector's certificate; by default the system's", restart,
       gateways},
  };
}

Table search_settings(GatewayFlags& f) {
  return {
      {"search.requests", "--search-request", texts, &f.search_requests,
       "JSON Pointers to values of requests by which operators find records, such as /order_id; "
       "with this or search.answers also trace ids and the upstream's references are indexed, and "
       "without both nothing is. The store has keyed digests of the values",
       live, gateways},
      {"search.answers", "--search-answer", texts, &f.search_answers,
       "the same for values of the upstream's answers, such as /id", live, gateways},
  };
}

Table store_settings(GatewayFlags& f) {
  static const std::string store_help =
      "URL of the store: " + store_url_forms() + ", which stores nothing on disk";
  return {
      {"store", "--store", config::store, &f.store, store_help},
      {"store_cache", "--store-cache", config::size_up_to(store_cache_bytes_max), &f.store_cache,
       "memory that embedded: may use instead of reads from its disk"},
      {"store_shards", "--store-shards", number(0, store_shards_max), &f.store_shards,
       "shards of embedded:, each with a log and a thread; by default (0) as many as the store "
       "has, and in a new one one for each four processors. A start with another number moves "
       "records first"},
      {"store_id", "--store-id", text, &f.store_id,
       "the id that the store must have, as the start logs it; another or a new store is refused"},
      {"migrate", "--migrate", truth, &f.migrate, "upgrade the store's schema if it is older"},
      {"spill_dir", "--spill-dir", path, &f.spill_dir,
       "directory for keyed bodies above 64KiB while they are served, as files without a name; by "
       "default the directory that an embedded: or sqlite: store is in, else TMPDIR or /tmp"},
      {"threads", "--threads", number(0, 256), &f.threads,
       "event loops; by default (0) one per core", restart, gateways},
      {"log_format", "--log-format", one_of("text|json"), &f.log_format,
       "format of the log on stderr"},
      {"log_requests", "--log-requests", truth, &f.log_requests,
       "log a line for each keyed request: ref, operation, outcome, times", restart, gateways},
      {"core_dumps", "--core-dumps", truth, &f.core_dumps,
       "let the kernel write core dumps, which contain keys, bodies and secrets in clear"},
  };
}

Table key_settings(GatewayFlags& f) {
  return {
      {"key.headers", "--key-header", texts, &f.key_headers,
       "header fields that may carry the key; by default Idempotency-Key", live, gateways},
      {"key.syntax", "--key-syntax", one_of("any|structured|bare"), &f.key_syntax,
       "accepted spelling of a key", live, gateways},
      {"key.scope", "--key-scope", one_of("operation|tenant"), &f.key_scope,
       "operation: a key is unique within scope and operation; tenant: within the scope, so reuse "
       "on another operation is refused"},
      {"key.secret_files", "--secret-file", paths, &f.secret_files,
       "key material for the digests of keys and requests, instead of the store's own; newest "
       "first; older ones find records that were made under them"},
      {"key.min_length", "--key-min-length", number(1, limits::key_bytes_max), &f.key_min_length,
       "shortest key in bytes", live, gateways},
      {"key.reject_pii", "--key-reject-pii", truth, &f.key_reject_pii,
       "refuse a key that looks like an e-mail address, phone or card number", live, gateways},
      {"key.time", "--key-time", one_of("ignored|checked|required"), &f.key_time,
       "new keys with their creation time (UUIDv7, ULID): checked refuses those older than the "
       "retention or from the future; required also refuses keys without a time",
       live, gateways},
      {"key.first_sent", "--key-first-sent", truth, &f.key_first_sent,
       "refuse a new key whose Repeatability-First-Sent is older than the retention", live,
       gateways},
      {"key.forward", "--key-forward", text, &f.key_forward,
       "the key's field on its way to the upstream: keep, strip or rename:NAME", live, gateways},
  };
}

Table async_settings(GatewayFlags& f) {
  return {
      {"async.secret_files", "--async-secret-file", paths, &f.async_secret_files,
       "key material that seals credentials of stored requests; newest first", live},
  };
}

Table encryption_settings(GatewayFlags& f) {
  return {
      {"encryption.secret_files", "--encryption-secret-file", paths, &f.encryption_secret_files,
       "key material that encrypts stored requests and answers in the store; newest first: the "
       "first seals, all open; none: they lie there in clear"},
      {"encryption.accept_clear", "--encryption-accept-clear", truth, &f.encryption_accept_clear,
       "with secret_files: replay also what lies in clear, which is older than the encryption, or "
       "which a writer to the store has put there"},
      {"encryption.key_per_scope", "--encryption-key-per-scope", truth, &f.encryption_key_per_scope,
       "with secret_files: each scope has a key of its own in the store, and idem store shred "
       "makes all of its answers and requests unreadable"},
  };
}

Table limit_settings(GatewayFlags& f) {
  const auto connections = number(1, limits::connections_cap);
  return {
      {"limits.head_timeout", "--head-timeout", duration, &f.head_timeout,
       "time for a request's head, from its first byte; at most 60s"},
      {"limits.idle_timeout", "--idle-timeout", duration, &f.idle_timeout,
       "how long a client's idle connection is kept; at most 1h"},
      {"limits.body_grace", "--body-grace", duration, &f.body_grace,
       "time for a request's body in addition to 1 s per KiB; at most 60s"},
      {"limits.write_timeout", "--write-timeout", duration, &f.write_timeout,
       "time in which a client must read each 64 KiB of an answer; at most 10m"},
      {"limits.connections", "--connections", connections, &f.connections,
       "client connections at the same time; more are closed", restart, gateways},
      {"limits.connections_per_address", "--connections-per-address", connections,
       &f.connections_per_address, "the same, for one IPv4 address or IPv6 /64", restart, gateways},
  };
}

Table quota_settings(GatewayFlags& f) {
  return {
      {"quotas.new_keys_per_second", "--quota-new-keys-per-second",
       number(0, limits::new_keys_per_second_cap), &f.quota_new_keys,
       "new keys of one scope, on average; 0: no limit", live, gateways},
      {"quotas.new_keys_at_once", "--quota-new-keys-at-once",
       number(0, limits::new_keys_per_second_cap), &f.quota_at_once,
       "new keys of one scope at once; 0: as many as in a second", live, gateways},
      {"quotas.active_keys", "--quota-active-keys", number(0, limits::active_keys_cap),
       &f.quota_keys, "keys of one scope that have not expired; 0: no limit", live, gateways},
      {"quotas.stored_bytes", "--quota-stored-bytes", size, &f.quota_bytes,
       "stored bytes of one scope: at least 1 KiB for each key with its answer; 0: no limit", live,
       gateways},
  };
}

Table gateway_settings(GatewayFlags& f) {
  Table all;
  for (const auto& part :
       {process_settings(f), connection_settings(f), settings_for_all(f.rest, "upstream."),
        store_settings(f), trace_settings(f), search_settings(f), settings_of(f.caller),
        key_settings(f), settings_for_all(f.rest, "defaults."), async_settings(f),
        encryption_settings(f), settings_for_all(f.rest, "limits."), limit_settings(f),
        quota_settings(f)}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  all.push_back({"routes", "", config::maps, &f.routes,
                 "settings for some requests; the first route that matches applies", live});
  all.push_back(
      {"destinations", "", config::maps, &f.destinations,
       "receivers of outbox messages, as signed webhooks; without any, no message is sent"});
  all.push_back(
      {"providers", "", config::maps, &f.providers,
       "services that know the outcome of unknown attempts; routes name them by `reconcile`"});
  return all;
}

Table provider_events(ProviderGiven& p) {
  return {
      {"events.signature", "", one_of("standard|stripe|hmac"), &p.event_signature,
       "signature of the events that it sends to /.idem/events/NAME: standard (Standard Webhooks), "
       "stripe (t=,v1= in one field), hmac (of the body, in one field)"},
      {"events.secret_files", "", paths, &p.event_secrets,
       "files with one secret each; a signature by any of them is valid, so secrets can be "
       "rotated"},
      {"events.field", "", text, &p.event_field,
       "for stripe (by default Stripe-Signature) and hmac: the field with the signature"},
      {"events.prefix", "", text, &p.event_prefix,
       "for hmac: a prefix of the signature, such as sha256="},
      {"events.id", "", text, &p.event_id,
       "JSON Pointer to the event's id; by default the field webhook-id"},
      {"events.operation", "", text, &p.event_operation,
       "JSON Pointer to the handle that the upstream received (Idem-Operation)"},
      {"events.key", "", text, &p.event_key,
       "JSON Pointer to the client's key, if the event has no handle"},
      {"events.derived_key", "", text, &p.event_derived_key,
       "JSON Pointer to the derived key that events.phase sent, if the event has neither"},
      {"events.phase", "", text, &p.event_phase, "name of the phase, for events.derived_key"},
      {"events.reference", "", text, &p.event_reference,
       "JSON Pointer to the upstream's reference (Idem-Reference), if the event has none of them"},
      {"events.fence", "", text, &p.event_fence,
       "JSON Pointer to the fence that the upstream received (Idem-Fence); if set, an event "
       "without it settles nothing"},
      {"events.found", "", texts, &p.event_found,
       "events that mean that the work was done, such as /type=charge.succeeded"},
      {"events.failed", "", texts, &p.event_failed,
       "events that mean that the work was tried and failed for good; they need events.fence"},
      {"events.body", "", text, &p.event_body,
       "JSON Pointer to the part of the event that becomes the replayed body"},
      {"events.headers", "", texts, &p.event_headers,
       "like replay.headers, with JSON Pointers into the event"},
  };
}

Table provider_settings(ProviderGiven& p) {
  Table all{
      {"name", "", text, &p.name, "its name in routes", restart, both, true},
      {"url", "", text, &p.url,
       "URL to ask by GET, with {operation} (the handle that the upstream received), {key} (the "
       "client's; records then contain it, sealed), {reference} (the upstream's Idem-Reference) or "
       "{derived_key:PHASE}, and optionally {scope} and {fence} (the Idem-Fence that the upstream "
       "received); none: the provider only sends events"},
      {"auth_file", "", path, &p.auth_file, "file with the value of Authorization"},
      {"ca", "", path, &p.ca, "PEM file: the CA of its certificate; by default the system's"},
      {"timeout", "", duration, &p.timeout, "time for one answer; at most 20s"},
      {"found", "", texts, &p.found,
       "answers that mean that the work was done: 200, 2xx, \"200 /status=captured\", \"200 "
       "/data/0\""},
      {"failed", "", texts, &p.failed,
       "answers that mean that the work was tried and failed for good"},
      {"not_there", "", texts, &p.not_there,
       "answers that mean that there is no such work; any other answer is asked again later"},
      {"grace", "", duration, &p.grace,
       "how long it may take to list its work; before that, \"not there\" proves nothing"},
      {"retry_first", "", duration, &p.retry_first,
       "pause after the first turn; doubled after each further one"},
      {"retry_max", "", duration, &p.retry_max, "longest pause between two turns"},
      {"attempts", "", number(1, 1'000), &p.attempts,
       "turns until the record is left to operators"},
      {"replay.found_status", "", number(200, 599), &p.found_status,
       "status of the replayed answer for done work"},
      {"replay.failed_status", "", number(200, 599), &p.failed_status,
       "status of the replayed answer for failed work"},
      {"replay.content_type", "", text, &p.content_type, "media type of the replayed body"},
      {"replay.body", "", text, &p.body,
       "JSON Pointer to the part of the provider's answer that becomes the replayed body; by "
       "default all"},
      {"replay.headers", "", texts, &p.headers,
       "fields of the replayed answer, such as \"Location: /v1/payments/{/id}\", with JSON "
       "Pointers into the provider's answer"},
  };
  const Table events = provider_events(p);
  all.insert(all.end(), events.begin(), events.end());
  return all;
}

Table destination_settings(DestinationGiven& d) {
  return {
      {"name", "", text, &d.name, "its name in messages", restart, both, true},
      {"url", "", text, &d.url, "http(s)://HOST[:PORT]/PATH", restart, both, true},
      {"deduplicates", "", duration, &d.deduplicates,
       "how long it recognises a repeated message by its webhook-id; 0s: never, so a message that "
       "may have arrived is not sent again",
       restart, both, true},
      {"secret_files", "", paths, &d.secret_files,
       "files with one secret of Standard Webhooks each (whsec_...), newest first; none: messages "
       "are unsigned"},
      {"timeout", "", duration, &d.timeout, "time for one delivery; at most 20s"},
      {"attempts", "", number(1, 1'000), &d.attempts,
       "attempts until a message becomes a dead letter"},
      {"source", "", text, &d.source, "value of ce-source: the sender"},
      {"ca", "", path, &d.ca, "PEM file: the CA of its certificate; by default the system's"},
  };
}

}  // namespace
}  // namespace setting_rows

std::vector<config::Setting> settings_of(GatewayFlags& flags) {
  return setting_rows::gateway_settings(flags);
}

std::vector<config::Setting> settings_of(DestinationGiven& destination) {
  return setting_rows::destination_settings(destination);
}

std::vector<config::Setting> settings_of(ProviderGiven& provider) {
  return setting_rows::provider_settings(provider);
}

std::vector<RouteGiven> read_routes(const std::vector<config::Node>& routes,
                                    Complaints& complaints) {
  std::vector<RouteGiven> read;
  read.reserve(routes.size());
  for (const auto& node : routes) {
    auto& route = read.emplace_back();
    route.place = node.place;
    config::read_map(node, settings_of(route), complaints);
  }
  return read;
}

std::vector<DestinationGiven> read_destinations(const std::vector<config::Node>& destinations,
                                                Complaints& complaints) {
  std::vector<DestinationGiven> read;
  read.reserve(destinations.size());
  for (const auto& node : destinations) {
    auto& one = read.emplace_back();
    one.place = node.place;
    config::read_map(node, settings_of(one), complaints);
    make_paths_absolute(settings_of(one));
  }
  return read;
}

std::vector<ProviderGiven> read_providers(const std::vector<config::Node>& providers,
                                          Complaints& complaints) {
  std::vector<ProviderGiven> read;
  read.reserve(providers.size());
  for (const auto& node : providers) {
    auto& one = read.emplace_back();
    one.place = node.place;
    config::read_map(node, settings_of(one), complaints);
    make_paths_absolute(settings_of(one));
  }
  return read;
}

}  // namespace idem::cli
