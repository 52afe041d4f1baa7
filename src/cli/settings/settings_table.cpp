#include "cli/settings/gateway_flags.hpp"

#include "cli/settings/paths.hpp"

#include <idem/worker_limits.hpp>

namespace idem::cli {
namespace {

using config::duration;
using config::number;
using config::one_of;
using config::path;
using config::paths;
using config::Setting;
using config::size;
using config::statuses;
using config::text;
using config::texts;
using config::truth;
constexpr auto live = config::Change::live;

using Table = std::vector<Setting>;

constexpr std::string_view modes = "conflict|wait|async";
constexpr std::string_view presets = "ietf|stripe|lenient";
constexpr std::string_view marks = "reserve|separate";
const config::Shape places = number(1, limits::async_running_max);

// One line a setting: {path in the file, flag, shape, slot, help, how it changes}. What can be
// changed by a reload says `live`.
Table process_settings(GatewayFlags& f) {
  return {
      {"listen", "--listen", text, &f.listen, "HOST:PORT for clients; port 0 takes a free one"},
      {"admin", "--admin", text, &f.admin,
       "HOST:PORT for the operator: /livez, /readyz, /metrics, /v1/keys; none by default"},
      {"admin_hosts", "--admin-host", texts, &f.admin_hosts,
       "names besides loopback under which the admin listener is addressed"},
      {"evidence_grace", "--evidence-grace", duration, &f.evidence_grace,
       "how much later than the lease's end an operator's \"nothing there\" must be observed"},
      {"metrics_tenants", "--metrics-tenants", one_of("digest|name|none"), &f.metrics_tenants,
       "how tenants are called in metrics; none: all counted as one"},
      {"tls.cert", "--tls-cert", path, &f.tls_cert,
       "PEM file: the certificate and its chain; read again on SIGHUP"},
      {"tls.key", "--tls-key", path, &f.tls_key, "PEM file: its key, without a passphrase"},
      {"tls.client_ca", "--tls-client-ca", path, &f.tls_client_ca,
       "PEM file: who signs the certificates of clients"},
      {"upstream.url", "--upstream", text, &f.upstream,
       "http(s)://HOST[:PORT] of the API behind the gateway"},
      {"upstream.ca", "--upstream-ca", path, &f.upstream_ca,
       "PEM file: who signs the upstream's; by default the system's"},
      {"upstream.verify", "--upstream-verify", truth, &f.upstream_verify,
       "the upstream's certificate must be good, and its own"},
      {"upstream.timeout", "--upstream-timeout", duration, &f.rest.timeout,
       "from the first byte sent to the whole answer", live},
      {"upstream.connect_timeout", "--connect-timeout", duration, &f.connect_timeout,
       "for a new upstream connection"},
      {"upstream.keepalive_idle", "--keepalive-idle", duration, &f.keepalive_idle,
       "how long an upstream connection is kept; 0s: never"},
      {"upstream.tunnel_idle", "--tunnel-idle", duration, &f.tunnel_idle,
       "how long an upgraded connection may be silent both ways", live},
      {"store", "--store", config::store, &f.store,
       "where records lie: sqlite:PATH, postgres://USER@HOST/DATABASE, redis://HOST (rediss://, "
       "redis+cluster://HOST,HOST/, redis+sentinel://HOST,HOST/MASTER), hybrid:?truth=URL&fast=URL "
       "or memory:, which keeps nothing"},
      {"store_id", "--store-id", text, &f.store_id,
       "the store that it must be, by the store_id that the start logs; another one, or none yet, "
       "is refused"},
      {"migrate", "--migrate", truth, &f.migrate, "upgrade the store's schema if it is older"},
      {"spill_dir", "--spill-dir", path, &f.spill_dir,
       "where keyed bodies above 64KiB lie while they are served, as files without a name; by "
       "default the store's directory"},
      {"threads", "--threads", number(0, 256), &f.threads,
       "event loops; by default (0) one per core"},
      {"log_format", "--log-format", one_of("text|json"), &f.log_format,
       "how events are written on stderr"},
      {"log_requests", "--log-requests", truth, &f.log_requests,
       "a line for each keyed request: ref, operation, outcome, times"},
  };
}

Table key_settings(GatewayFlags& f) {
  return {
      {"key.headers", "--key-header", texts, &f.key_headers,
       "accepted field names; Idempotency-Key by default", live},
      {"key.syntax", "--key-syntax", one_of("any|structured|bare"), &f.key_syntax,
       "accepted spelling of a key", live},
      {"key.scope", "--key-scope", one_of("operation|tenant"), &f.key_scope,
       "operation: a key is unique in its scope and operation; tenant: in its scope, so that reuse "
       "on another operation is refused"},
      {"key.secret_files", "--secret-file", paths, &f.secret_files,
       "key material for the digests of keys and requests, in place of the store's own; newest "
       "first: older ones are for the records that were made under them"},
      {"key.min_length", "--key-min-length", number(1, limits::key_bytes_max), &f.key_min_length,
       "shortest key in bytes", live},
      {"key.reject_pii", "--key-reject-pii", truth, &f.key_reject_pii,
       "refuse a key that looks like an e-mail address, phone or card number", live},
      {"key.time", "--key-time", one_of("ignored|checked|required"), &f.key_time,
       "new keys that carry the time of their making (UUIDv7, ULID): checked refuses those that "
       "are "
       "older than the retention or from the future; required refuses all others, too",
       live},
      {"key.first_sent", "--key-first-sent", truth, &f.key_first_sent,
       "refuse a new key whose Repeatability-First-Sent is older than the retention", live},
      {"key.forward", "--key-forward", text, &f.key_forward,
       "the key's field on its way to the upstream: keep, strip or rename:NAME", live},
  };
}

Table async_settings(GatewayFlags& f) {
  return {
      {"async.secret_files", "--async-secret-file", paths, &f.async_secret_files,
       "key material under which credentials of stored requests are sealed; newest first", live},
  };
}

Table default_settings(GatewayFlags& f) {
  auto& rest = f.rest;
  return {
      {"defaults.preset", "--preset", one_of(presets), &rest.preset,
       "what an upstream's answer means", live},
      {"defaults.mode", "--mode", one_of(modes), &rest.mode,
       "what a duplicate is answered while the first request runs", live},
      {"defaults.require_key", "--require-key", truth, &rest.require_key,
       "POST and PATCH need a key", live},
      {"defaults.lease", "--lease", duration, &rest.lease,
       "how long an attempt holds its record without renewal", live},
      {"defaults.retention", "--retention", duration, &rest.retention,
       "how long an answer is replayed", live},
      {"defaults.tombstone", "--tombstone", duration, &rest.tombstone,
       "how long an expired key is refused after that", live},
      {"defaults.accept_rerun_after_expiry", "--accept-rerun-after-expiry", truth,
       &rest.accept_rerun_after_expiry, "needed for a tombstone below 24h", live},
      {"defaults.replay_headers", "--replay-field", texts, &rest.replay_headers,
       "fields such as Set-Cookie that are stored and replayed although they are not by default",
       live},
      {"defaults.dispatch_mark", "--dispatch-mark", one_of(marks), &rest.dispatch_mark,
       "reserve: one durable write before dispatch; separate: a second one just before the first "
       "byte",
       live},
      {"defaults.respond_async", "--respond-async", truth, &rest.respond_async,
       "a client may have its request run later: Prefer: respond-async", live},
      {"defaults.async.keep_headers", "--async-keep-header", texts, &rest.async_keep_headers,
       "credentials that are stored, sealed, with a request that is run later; all others are "
       "dropped",
       live},
      {"defaults.async.concurrency", "--async-concurrency", places, &rest.async_concurrency,
       "stored requests of one route that run at a time", live},
      {"defaults.async.tenant_concurrency", "--async-tenant-concurrency", places,
       &rest.async_tenant_concurrency, "of them, those of one tenant", live},
  };
}

Table limit_settings(GatewayFlags& f) {
  const auto connections = number(1, limits::connections_cap);
  return {
      {"limits.request_body", "--request-body-max", size, &f.rest.request_body,
       "largest keyed request body", live},
      {"limits.response_body", "--response-body-max", size, &f.rest.response_body,
       "largest answer that is stored", live},
      {"limits.wait_max", "--wait-max", duration, &f.rest.wait_max,
       "how long a duplicate is kept waiting, by the mode or by Prefer: wait=N; 0s: never, at most "
       "5m",
       live},
      {"limits.head_timeout", "--head-timeout", duration, &f.head_timeout,
       "for a request's head, from its first byte; at most 60s"},
      {"limits.idle_timeout", "--idle-timeout", duration, &f.idle_timeout,
       "how long a client's idle connection is kept; at most 1h"},
      {"limits.body_grace", "--body-grace", duration, &f.body_grace,
       "for a request's body besides 1 KiB/s; at most 60s"},
      {"limits.write_timeout", "--write-timeout", duration, &f.write_timeout,
       "for each 64 KiB that a client takes; at most 10m"},
      {"limits.connections", "--connections", connections, &f.connections,
       "client connections at the same time; more are closed"},
      {"limits.connections_per_address", "--connections-per-address", connections,
       &f.connections_per_address, "of one IPv4 address or IPv6 /64"},
  };
}

Table quota_settings(GatewayFlags& f) {
  return {
      {"quotas.new_keys_per_second", "--quota-new-keys-per-second",
       number(0, limits::new_keys_per_second_cap), &f.quota_new_keys,
       "new keys of one scope, on average; 0: no limit", live},
      {"quotas.new_keys_at_once", "--quota-new-keys-at-once",
       number(0, limits::new_keys_per_second_cap), &f.quota_at_once,
       "of them, how many may come together; 0: those of a second", live},
      {"quotas.active_keys", "--quota-active-keys", number(0, limits::active_keys_cap),
       &f.quota_keys, "keys of one scope that have not expired; 0: no limit", live},
      {"quotas.stored_bytes", "--quota-stored-bytes", size, &f.quota_bytes,
       "of one scope: 1 KiB for each key with its answer, and what is larger besides; 0: no limit",
       live},
  };
}

}  // namespace

std::vector<Setting> settings_of(GatewayFlags& f) {
  Table all = process_settings(f);
  for (const auto& part : {settings_of(f.caller), key_settings(f), default_settings(f),
                           async_settings(f), limit_settings(f), quota_settings(f)}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  all.push_back({"routes", "", config::maps, &f.routes,
                 "what differs between requests; the first that matches wins", live});
  all.push_back({"destinations", "", config::maps, &f.destinations,
                 "where messages of the outbox go, as signed webhooks; without any, none is sent"});
  all.push_back({"providers", "", config::maps, &f.providers,
                 "who is asked about unknown outcomes; routes name them by `reconcile`"});
  return all;
}

namespace {

Table provider_events(ProviderGiven& p) {
  return {
      {"events.signature", "", one_of("standard|stripe|hmac"), &p.event_signature,
       "how its events are signed, which it sends to /.idem/events/NAME: standard (Standard "
       "Webhooks), stripe (t=,v1= in one field), hmac (of the body, in one field)"},
      {"events.secret_files", "", paths, &p.event_secrets,
       "each with a secret; any of them will do, so that it may be changed"},
      {"events.field", "", text, &p.event_field,
       "of stripe (Stripe-Signature by default) and hmac: where the signature stands"},
      {"events.prefix", "", text, &p.event_prefix, "of hmac: what stands before it, as sha256="},
      {"events.id", "", text, &p.event_id,
       "JSON Pointer to the event's id; the field webhook-id by default"},
      {"events.operation", "", text, &p.event_operation,
       "JSON Pointer to the handle that the upstream was sent (Idem-Operation)"},
      {"events.key", "", text, &p.event_key,
       "JSON Pointer to the client's key, where there is no handle"},
      {"events.derived_key", "", text, &p.event_derived_key,
       "JSON Pointer to the key that events.phase sent, where there is neither"},
      {"events.phase", "", text, &p.event_phase, "of events.derived_key: the phase's name"},
      {"events.reference", "", text, &p.event_reference,
       "JSON Pointer to the upstream's reference (Idem-Reference), where there is none of them"},
      {"events.fence", "", text, &p.event_fence,
       "JSON Pointer to the fence that the upstream was sent (Idem-Fence); where this is set, an "
       "event without it settles nothing"},
      {"events.found", "", texts, &p.event_found,
       "events that say that it was done, such as /type=charge.succeeded"},
      {"events.failed", "", texts, &p.event_failed,
       "events that say that it was tried and failed for good; they need events.fence"},
      {"events.body", "", text, &p.event_body,
       "JSON Pointer to the part of the event that becomes the body of the answer"},
      {"events.headers", "", texts, &p.event_headers,
       "as replay.headers, with JSON Pointers into the event"},
  };
}

}  // namespace

std::vector<Setting> settings_of(ProviderGiven& p) {
  Table all{
      {"name", "", text, &p.name, "as routes name it", config::Change::restart, true},
      {"url", "", text, &p.url,
       "where it is asked, by GET, with {operation} (the handle that the upstream was sent), "
       "{key} (the client's, which is kept for that, sealed), {reference} (its Idem-Reference) or "
       "{derived_key:PHASE}, and {scope}, and {fence} (the Idem-Fence that "
       "names the attempt); none: it tells by events"},
      {"auth_file", "", path, &p.auth_file, "file with the value of Authorization"},
      {"ca", "", path, &p.ca, "PEM file: who signs its certificate; by default the system's"},
      {"timeout", "", duration, &p.timeout, "for one answer; at most 20s"},
      {"found", "", texts, &p.found,
       "answers that say that it was done: 200, 2xx, \"200 /status=captured\", \"200 /data/0\""},
      {"failed", "", texts, &p.failed, "answers that say that it was tried and failed for good"},
      {"not_there", "", texts, &p.not_there,
       "answers that say that there is nothing of it; all others say nothing yet"},
      {"grace", "", duration, &p.grace,
       "how long it may take to show what it did; before that, \"not there\" proves nothing"},
      {"retry_first", "", duration, &p.retry_first, "pause behind the first turn, doubled by each"},
      {"retry_max", "", duration, &p.retry_max, "longest pause between two turns"},
      {"attempts", "", number(1, 1'000), &p.attempts, "after so many turns it is an operator's"},
      {"replay.found_status", "", number(200, 599), &p.found_status,
       "status of the answer that is replayed for what was done"},
      {"replay.failed_status", "", number(200, 599), &p.failed_status, "and for what failed"},
      {"replay.content_type", "", text, &p.content_type, "of its body"},
      {"replay.body", "", text, &p.body,
       "JSON Pointer to the part of the provider's answer that becomes its body; all by default"},
      {"replay.headers", "", texts, &p.headers,
       "such as \"Location: /v1/payments/{/id}\", with JSON Pointers into the provider's answer"},
  };
  const Table events = provider_events(p);
  all.insert(all.end(), events.begin(), events.end());
  return all;
}

std::vector<Setting> settings_of(DestinationGiven& d) {
  return {
      {"name", "", text, &d.name, "as messages name it", config::Change::restart, true},
      {"url", "", text, &d.url, "http(s)://HOST[:PORT]/PATH", config::Change::restart, true},
      {"deduplicates", "", duration, &d.deduplicates,
       "for how long it tells a repeated message by its webhook-id; 0s: not at all, and what may "
       "have arrived is never sent again",
       config::Change::restart, true},
      {"secret_files", "", paths, &d.secret_files,
       "each with a secret of Standard Webhooks (whsec_...); the newest first; none: unsigned"},
      {"timeout", "", duration, &d.timeout, "for one delivery; at most 20s"},
      {"attempts", "", number(1, 1'000), &d.attempts, "after so many it is a dead letter"},
      {"source", "", text, &d.source, "ce-source: who sends"},
      {"ca", "", path, &d.ca, "PEM file: who signs its certificate; by default the system's"},
  };
}

namespace {

Table route_identity(RouteGiven& r) {
  return {
      {"name", "", text, &r.name,
       "the operation that records are stored under; keep it when the pattern changes"},
      {"formerly", "", texts, &r.formerly, "operations under which older records were stored"},
      {"match.methods", "", texts, &r.methods, "such as POST; all by default"},
      {"match.path", "", text, &r.path, "such as /v1/quotes/{id} or /v1/{rest...}", live, true},
      {"mode", "", one_of(modes), &r.mode,
       "what a duplicate is answered while the first request runs"},
      {"require_key", "", truth, &r.require_key, "POST and PATCH need a key"},
      {"preset", "", one_of(presets), &r.preset, "what an upstream's answer means"},
      {"statuses", "", statuses("store|release|unknown"), &r.statuses,
       "what an upstream's answer of that status means; release: that the work was not done"},
      {"errors", "", one_of("rolled_back"), &r.errors,
       "rolled_back: a 5xx of the service, but not 502, 503 or 504, promises that its transaction "
       "was rolled back"},
      {"fingerprint.include", "", texts, &r.fingerprint_include,
       "JSON Pointers to what counts of the body; all by default, and where none meets anything"},
      {"fingerprint.exclude", "", texts, &r.fingerprint_exclude,
       "JSON Pointers to what does not count of the body"},
      {"fingerprint.headers", "", texts, &r.fingerprint_headers,
       "fields that count; none by default"},
  };
}

Table route_times(RouteGiven& r) {
  return {
      {"timeout", "", duration, &r.timeout, "from the first byte sent to the whole answer"},
      {"lease", "", duration, &r.lease, "how long an attempt holds its record without renewal"},
      {"lease_policy", "", one_of("unknown|resume|rerun"), &r.lease_policy,
       "what becomes of an expired lease: unknown, or rerun where repeating is safe"},
      {"repeating_is_safe", "", truth, &r.repeating_is_safe,
       "needed for lease_policy: rerun: the work may run twice without harm"},
      {"retention", "", duration, &r.retention, "how long an answer is replayed"},
      {"tombstone", "", duration, &r.tombstone, "how long an expired key is refused after that"},
      {"accept_rerun_after_expiry", "", truth, &r.accept_rerun_after_expiry,
       "needed for a tombstone below 24h"},
      {"wait_max", "", duration, &r.wait_max,
       "longest that a duplicate is kept waiting; 0s: never"},
      {"limits.request_body", "", size, &r.request_body, "largest keyed request body"},
      {"limits.response_body", "", size, &r.response_body, "largest answer that is stored"},
      {"store_body", "", truth, &r.store_body,
       "false: that the work ran is recorded, and the answer's body is not"},
      {"replay_headers", "", texts, &r.replay_headers,
       "fields such as Set-Cookie that are stored and replayed although they are not by default"},
      {"dispatch_mark", "", one_of(marks), &r.dispatch_mark,
       "reserve: one durable write before dispatch; separate: a second one just before the first "
       "byte"},
      {"reconcile", "", text, &r.reconcile, "the provider that is asked about unknown outcomes"},
  };
}

Table route_async(RouteGiven& r) {
  return {
      {"respond_async", "", truth, &r.respond_async,
       "a client may have its request run later: Prefer: respond-async"},
      {"async.keep_headers", "", texts, &r.async_keep_headers,
       "credentials that are stored, sealed, with a request that is run later"},
      {"async.concurrency", "", places, &r.async_concurrency, "stored requests that run at a time"},
      {"async.tenant_concurrency", "", places, &r.async_tenant_concurrency,
       "of them, those of one tenant"},
  };
}

}  // namespace

std::vector<Setting> settings_of(RouteGiven& r) {
  Table all = route_identity(r);
  const Table times = route_times(r);
  all.insert(all.end(), times.begin(), times.end());
  const Table async = route_async(r);
  all.insert(all.end(), async.begin(), async.end());
  return all;
}

std::vector<RouteGiven> read_routes(const std::vector<config::Node>& routes,
                                    Complaints& complaints) {
  std::vector<RouteGiven> read;
  read.reserve(routes.size());
  for (const auto& node : routes) {
    auto& route = read.emplace_back();
    route.place = node.place;
    config::take(node, settings_of(route), complaints);
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
    config::take(node, settings_of(one), complaints);
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
    config::take(node, settings_of(one), complaints);
    make_paths_absolute(settings_of(one));
  }
  return read;
}

}  // namespace idem::cli
