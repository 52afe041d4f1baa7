#pragma once

#include <chrono>
#include <cstddef>

/// @file
/// Bounds of background work, each with its reason: reconciliation, events, phases, messages,
/// audit, asynchronous requests, keys of scopes, comparisons. Those of requests and stores are in
/// <idem/limits.hpp>.
namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// Records that sweeper and reaper each finish in one call: the more a call itself costs, the more.
// 16 need less than a millisecond of PostgreSQL's time, which slows requests of that moment; 8 need
// a third of a millisecond of the embedded store's, for which requests wait: with 64, the slowest
// hundredth of the requests took half as long again.
inline constexpr std::size_t lifecycle_slice = 64;
inline constexpr std::size_t lifecycle_slice_sql = 16;
inline constexpr std::size_t lifecycle_slice_embedded = 8;
// How often they look if nothing was left. On PostgreSQL one call reads all leases that ended
// since, though nearly all were settled in time: a quarter of a second's leases are 2 ms at a
// thousand new keys a second.
inline constexpr auto lifecycle_interval = 250ms;
// While more is due they rest as long as the slice took, so that requests have half of the store's
// time; at least so long for each record, which makes some 2,500 records a second, so that a
// request rarely meets two slices. The rest has a maximum, because a slice waits for its turn on a
// busy PostgreSQL, which would otherwise never catch up: rests 3 times as long, 50 ms at most, made
// 1,600 records a second in slices of 64.
inline constexpr auto lifecycle_rest_each = 250us;
inline constexpr auto lifecycle_rest_max = 20ms;
// Records late by no more than lifecycle_late_small go at that pace: they cost only their room. For
// each lifecycle_late_doubling more, a slice has twice as many records, up to sweep_batch, and then
// the rests are half as long. So the lateness stops growing when the pace meets the rate at which
// records become due (ten times that rate after 2 s more), and a store far behind does nothing
// else.
inline constexpr auto lifecycle_late_small = 2s;
inline constexpr auto lifecycle_late_doubling = 500ms;
// Further doublings change nothing: a slice of 8 is a batch after 5, and a rest of 20 ms is none
// after 10.
inline constexpr double lifecycle_doublings_max = 20;
// A pass that returns fewer records than asked for may leave more behind if these were as late as
// that: the store also read records that needed no step.
inline constexpr auto lifecycle_late_more = 1s;
// A store without a request for so long is idle: whole batches then, one after the other. The first
// request that comes meets one of them.
inline constexpr auto lifecycle_idle_after = 100ms;
// Reaped records that one log line reports.
inline constexpr std::size_t reaped_per_line_max = 10'000;

// Unknown records that a reconciler reads in one turn, how often it does, and how many questions it
// asks at the same time: a provider's answer takes a fraction of a second.
inline constexpr std::size_t reconcile_page = 1'000;
inline constexpr auto reconcile_interval = 100ms;
// Records whose evidence is not read again while their provider is paused, of 100 bytes each.
inline constexpr std::size_t reconcile_waiting_max = 100'000;
inline constexpr unsigned reconcile_lanes = 4;
// Between the beginnings of two records' questions. A turn needs some two milliseconds of the
// store's and this machine's processors, so a crowd of them slows requests; and a hundred reads a
// second are what large providers allow one account.
inline constexpr auto reconcile_rest_each = 10ms;
// How often it reads the store's clock anew. Two clocks drift apart by less than 0.1 %.
inline constexpr auto reconcile_clock_interval = 60s;
// Pauses between turns at one record: in all about four hours, then a person has to look.
inline constexpr auto reconcile_retry_first = 2s;
inline constexpr auto reconcile_retry_max = 10min;
inline constexpr int reconcile_attempts_default = 30;

// A provider's event, its id, how far its timestamp may be from now (as in Standard Webhooks), and
// how many of its signatures are checked.
inline constexpr std::size_t event_body_bytes_max = 64UL * 1024;
inline constexpr std::size_t event_id_bytes_max = 255;
inline constexpr auto event_tolerance = 5min;
inline constexpr std::size_t event_signatures_max = 16;
// Records of one state that are searched for an event which does not name its record by the handle.
inline constexpr std::size_t event_records_seen_max = 1'000'000;
// Events whose first arrival is remembered, of some 300 bytes each; and how long an event waits for
// an attempt that was under way then: longer than an attempt of the library may run.
inline constexpr std::size_t early_events_max = 16'384;
inline constexpr auto early_event_max = 15min;

// Phases of one operation, and bytes of a phase's name; both lie in each record's recovery point.
inline constexpr std::size_t phases_max = 32;
inline constexpr std::size_t phase_name_bytes_max = 64;
// How long one foreign call may take; the lease must cover it twice.
inline constexpr auto call_timeout_default = 20s;
// The rest of the lease that a call needs beyond that at its start: a tenth of it, at most so much.
inline constexpr auto call_margin_max = 5s;
// Tries of a call within one attempt, for failures that pass in a moment; then the attempt ends,
// and another one goes on when its lease is over.
inline constexpr int call_tries_max = 3;
inline constexpr auto call_retry_first = 200ms;
inline constexpr auto call_retry_max = 2s;
// How long an attempt waits for the end of a lookup's grace; beyond it, the next attempt looks up.
inline constexpr auto lookup_wait_max = 30s;
// Attempts at one request in phases before a person has to look: one a minute, as leases end.
inline constexpr int flow_attempts_max = 20;
// Unfinished requests that a completer reads in one turn.
inline constexpr std::size_t completer_batch = 32;
// When it looks again at work whose record waits for evidence.
inline constexpr auto flow_unknown_interval = 10min;

// A message's payload, as large as a stored answer, and its names.
inline constexpr std::size_t message_payload_bytes_max = 1024UL * 1024;
inline constexpr std::size_t message_name_bytes_max = 255;
// The kept part of a delivery's error.
inline constexpr std::size_t delivery_error_bytes_max = 500;
// Messages in one claim of a relay: it sends them one after the other, and the lease must still
// cover the last one.
inline constexpr std::size_t relay_batch = 16;
inline constexpr auto relay_interval = 200ms;
inline constexpr auto delivery_timeout_default = 10s;
// The first pause after a failure is half to all of this, each further one twice as long (full
// jitter would bring the first repeat at once), to an hour at most: in all about a day.
inline constexpr auto delivery_retry_first = 2s;
inline constexpr auto delivery_retry_max = 1h;
inline constexpr int delivery_attempts_default = 30;
inline constexpr auto retry_after_max = 24h;
// Failures in a row, of any message, after which a destination is paused; then one message tries
// it.
inline constexpr int breaker_failures = 5;
inline constexpr auto breaker_pause_first = 5s;
inline constexpr auto breaker_pause_max = 5min;
// How long delivered and discarded messages are kept for questions about them.
inline constexpr auto message_retention_default = 168h;
inline constexpr auto message_reap_interval = 1min;
// Dead letters a second that a redrive may send to a destination that has just been repaired.
inline constexpr double redrive_rate_max = 1'000;

// Asynchronous requests. How many of them one gateway runs at a time: each holds its request in
// memory, 1 MiB by default, and an upstream connection.
inline constexpr std::size_t async_running_max = 128;
// The defaults for one route and for one tenant in it: neither may use all of the places above, nor
// all of an upstream's capacity.
inline constexpr std::size_t async_route_default = 32;
inline constexpr std::size_t async_tenant_default = 16;
// How often a dispatcher looks for requests that another node accepted or that have rested. It
// claims those of its own process at once.
inline constexpr auto async_claim_interval = 500ms;
// The same if no route is asynchronous: requests of an earlier configuration are still owed.
inline constexpr auto async_claim_interval_idle = 10s;
// Requests that one second may claim and put back because all places of their route or tenant are
// taken: two writes each, so this bounds what one busy route costs the others. While no place at
// all is free the others could not run either, and the bound is lower.
inline constexpr std::size_t async_put_back_max = 512;
inline constexpr std::size_t async_put_back_full_max = 64;
// Their rests, at least and at most: between the two, until their tenant has finished what was put
// back before them, so that a backlog is not claimed again and again.
inline constexpr auto async_put_back_rest = 250ms;
inline constexpr auto async_put_back_rest_max = 30s;
// Tenants and routes whose backlog is estimated for that.
inline constexpr std::size_t async_backlogs_max = 4'096;
// Claimed requests that wait in memory for a place, and for how long: enough that the next request
// uses a free place at once. If this process dies they are stuck until their lease ends.
inline constexpr std::size_t async_held_max = 64;
// Answers of settled requests that are read to their end beside the places: each has an upstream
// connection and, where it is not all sent, its request. Beyond that a request keeps its place.
inline constexpr std::size_t async_unread_max = 128;
inline constexpr auto async_held_time_max = 5s;
// Rests after a release: half to all of the first, doubled with each release, at most the second. A
// client may lose that minute after its upstream is back.
inline constexpr auto async_rest_first = 1s;
inline constexpr auto async_rest_max = 60s;
// Requests whose releases are counted for that; for others the count begins anew.
inline constexpr std::size_t async_rests_kept_max = 16'384;
// The rest of a request that cannot run here (its route is gone, its secret is another one):
// another node may run it, or the next configuration.
inline constexpr auto async_unable_rest = 60s;
// Records that one step of `idem store rekey` reads and writes, one after the other: requests wait
// for one of them at most.
inline constexpr std::size_t rekey_page = 100;
// Scopes whose keys are in memory, about 200 bytes each; others are read from the store. Beyond it
// the oldest half is forgotten.
inline constexpr std::size_t scope_keys_cached_max = 16'384;
// How long a process uses a scope's keys before it reads them again: a read a scope in half of it,
// and so long a process that does not know of a shred opens and seals as before.
inline constexpr auto scope_keys_life = 10s;
// How long a shred waits behind its new key, until no process seals under the one before: their
// life, and what a call waits in the store's queues.
inline constexpr auto scope_key_shred_wait = 15s;
// Keys of one scope at once: each shred that was begun and not finished adds one.
inline constexpr std::size_t scope_keys_alive_max = 16;
// How often the keys of a scope are read anew because others change them meanwhile.
inline constexpr int scope_keys_read_tries_max = 8;
// Fields of a credential that one route keeps.
inline constexpr std::size_t async_keep_fields_max = 16;
// Lookups of operations for one scope, a second and at once: enough for a hundred clients that poll
// each second, and far too few to guess 128 bits.
inline constexpr double lookups_per_second = 100;
inline constexpr double lookups_at_once = 200;
// Scopes whose lookups are counted; a scope that has rested needs no place.
inline constexpr std::size_t lookup_scopes_max = 16'384;

// One request to another service, and the part of its answer that is read: a page of a provider's
// list has some hundred entries of some hundred bytes.
inline constexpr auto fetch_timeout_default = 30s;
inline constexpr std::size_t fetch_bytes_default = 8UL * 1024 * 1024;
inline constexpr std::size_t fetch_head_bytes_max = 64UL * 1024;

// A line of a provider's export, which is one charge with what hangs on it, and a CSV file's
// columns.
inline constexpr std::size_t export_line_bytes_max = 1024UL * 1024;
inline constexpr std::size_t export_columns_max = 1'024;
// Records and lines of one comparison together: each needs about 200 bytes.
inline constexpr std::size_t comparison_entries_max = 10'000'000;
// Differences that one comparison keeps to show; what is beyond is counted.
inline constexpr std::size_t comparison_findings_max = 100'000;
// Unreadable lines that are reported one by one; those beyond are counted.
inline constexpr std::size_t comparison_bad_lines_shown = 100;
// Lines that are kept whole until the end, because they may settle an unknown record.
inline constexpr std::size_t comparison_kept_bytes_max = 64UL * 1024 * 1024;
// Records outside of the period that are read one by one before any is reported as missing.
inline constexpr std::size_t comparison_lookups_max = 100'000;
// How far the moments of the two sides may be apart: clocks, and the time that a charge takes.
inline constexpr auto comparison_slack_default = 5min;
// The default delay until a provider's export lists executed work: settlement files come once a
// day. Too long a time delays the decision; too short a one can cause a second charge.
inline constexpr auto export_delay_default = 24h;
inline constexpr auto comparison_progress_interval = 2s;
// Tries of a page, which changes nothing.
inline constexpr int export_page_tries = 3;
// Pages of a list that never ends.
inline constexpr std::size_t export_pages_max = 1'000'000;
// Values of a stored answer that a listing may be asked for.
inline constexpr std::size_t listed_values_max = 8;
inline constexpr std::size_t listed_value_bytes_max = 1'024;

// Tries to append a line to the audit while other processes append, too; each lost try means that
// one of them succeeded. More than so many decisions at one moment are no people's.
inline constexpr int audit_tries_max = 32;
// How long a line that could not be appended yet waits for the next try, and how many may wait.
inline constexpr auto audit_retry_interval = 5s;
inline constexpr std::size_t audit_owed_max = 64;
// What a line says of a state or of changed settings; a whole line must fit a journal's.
inline constexpr std::size_t audit_text_bytes_max = 8UL * 1024;
// Lines that one answer looks through, or a start to find the settings that were noted last.
inline constexpr std::size_t audit_scan_lines_max = 20'000;

// Ended attempts, and reserves without a reply, of one key of shadow routes for which later
// requests of the key wait: far more than clients retry at once. Beyond it they are not observed.
inline constexpr std::size_t shadow_turns_max = 64;

// Lines of a log that nobody reads: of those that clients cause, and of all others, each so many
// bytes wait. 1 MiB has some 5,000 lines: two minutes of misuses of one loop
// (request_lines_per_second_max) while a person reads `less`, and little beside the rest of the
// process.
inline constexpr std::size_t log_waiting_bytes_max = 1024UL * 1024;
// How long the end of a process or a handover waits for the reader: a reader that is alive takes
// 2 MiB in milliseconds, and systemd waits 90 s before it kills.
inline constexpr auto log_flush_max = 2s;
// The same before an abort, whose requests hang already.
inline constexpr auto log_abort_flush_max = 1s;
// Between two reports of lost lines while the reader is too slow all the time.
inline constexpr auto log_lost_interval = 10s;

// Between two log lines about a service that fails all the time: often enough to be noticed, and a
// few thousand a day.
inline constexpr auto outage_line_interval = 30s;
// Lines of a record's evidence about why its provider did not answer for one attempt.
inline constexpr int unanswered_lines_max = 3;
// Routes with time series of their own, some 20 of each; the rest share them.
inline constexpr std::size_t metric_routes_max = 64;
// Unsettled records that `idem status` reads: a second's work of the slowest store. Beyond them it
// shows the counts as "at least".
inline constexpr std::size_t status_records_max = 10'000;
// Records that `idem keys list` reads to show the oldest first, and how many of them it shows.
inline constexpr std::size_t listed_records_max = 10'000;
inline constexpr std::size_t listed_rows_default = 100;
// An unknown record that is older needs a person: a provider's webhook or the first turns at it
// would have ended it.
inline constexpr auto unknown_is_old = 15min;
// A reaper that is further behind needs a person: under full load up to 20 s are usual.
inline constexpr auto reap_is_late = 2min;

}  // namespace idem::inline v0_1::limits
