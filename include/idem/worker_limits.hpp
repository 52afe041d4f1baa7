#pragma once

#include <chrono>
#include <cstddef>

/// @file
/// Bounds of what goes on behind the requests, each with its reason: reconciliation and events,
/// phases, messages, asynchronous requests, comparisons. Those of requests and stores are in
/// <idem/limits.hpp>.
namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// Records that sweeper and reaper each work off at a time: the more a call costs beside them, the
// more. 16 take less than a millisecond of PostgreSQL's time, which the requests of that moment
// feel; 8 a third of one of the embedded store's, for which they wait: of 64, the slowest hundredth
// of them took half as long again.
inline constexpr std::size_t lifecycle_slice = 64;
inline constexpr std::size_t lifecycle_slice_sql = 16;
inline constexpr std::size_t lifecycle_slice_embedded = 8;
// How often they look where nothing was left. Of PostgreSQL's leases all that ended since are
// looked at in one call, though nearly all were settled in time: a quarter of a second's are 2 ms
// at a thousand new keys a second.
inline constexpr auto lifecycle_interval = 250ms;
// While more is due they rest as long as that took, so that half of a store's time is the
// requests', but for each record of a slice so long at least that it is some 2,500 a second, and a
// request rarely meets two slices. No longer than the other, or a busy PostgreSQL, where a slice
// waits for its turn, would be kept from ever catching up: of 3 times as long and 50 ms at most
// came 1,600 records of 64 each a second.
inline constexpr auto lifecycle_rest_each = 250us;
inline constexpr auto lifecycle_rest_max = 20ms;
// What has been due for no longer than lifecycle_late_small is worked off at that pace: it costs
// nothing but its place. For each lifecycle_late_doubling more, twice as many records are taken at
// a time, up to sweep_batch, and then with rests half as long: so the lateness stops to grow where
// the pace meets the rate at which records become due, with ten times as many of them after 2 s
// more, and a store that is far behind works on nothing else.
inline constexpr auto lifecycle_late_small = 10s;
inline constexpr auto lifecycle_late_doubling = 500ms;
// As much as matters: a slice of 8 is a batch after 5 doublings, and a rest of 20 ms none after 10.
inline constexpr double lifecycle_doublings_max = 20;
// A store that answers a pass with fewer records than it was asked for may have more all the same
// when these were as late as that: it looked at others in vain.
inline constexpr auto lifecycle_late_more = 1s;
// Who has not asked for so long is not there: whole batches then, one after the other, of which the
// first request that comes meets one.
inline constexpr auto lifecycle_idle_after = 100ms;
// Records of one line in the log.
inline constexpr std::size_t reaped_told = 10'000;

// Unknown records that a reconciler looks at in one turn, how often it does, and how many it asks
// about at the same time: a provider's answer takes a fraction of a second.
inline constexpr std::size_t reconcile_page = 1'000;
inline constexpr auto reconcile_interval = 100ms;
// Records whose evidence is not read again while their provider is left alone, of 100 bytes each.
inline constexpr std::size_t reconcile_waiting_max = 100'000;
inline constexpr unsigned reconcile_lanes = 4;
// How often it hears the store's clock anew. Two clocks drift apart by less than 0.1 %.
inline constexpr auto reconcile_clock_interval = 60s;
// Pauses between turns at one record: in all about four hours, then a person has to look.
inline constexpr auto reconcile_retry_first = 2s;
inline constexpr auto reconcile_retry_max = 10min;
inline constexpr int reconcile_attempts_default = 30;

// A provider's event, its id, how far its timestamp may be from now (as Standard Webhooks has it),
// and the signatures that are looked at of one.
inline constexpr std::size_t event_body_bytes_max = 64UL * 1024;
inline constexpr std::size_t event_id_bytes_max = 255;
inline constexpr auto event_tolerance = 5min;
inline constexpr std::size_t event_signatures_max = 16;
// Records of one state that are looked through for an event which does not name its record by the
// handle.
inline constexpr std::size_t event_records_seen_max = 1'000'000;
// Events of whose first telling the moment is kept, of some 300 bytes each; and how long one waits
// for an attempt that was under way then: longer than an attempt of the library may run.
inline constexpr std::size_t early_events_max = 16'384;
inline constexpr auto early_event_max = 15min;

// Phases of one operation, and bytes of a phase's name; both lie in each record's recovery point.
inline constexpr std::size_t phases_max = 32;
inline constexpr std::size_t phase_name_bytes_max = 64;
// How long one call to the outside may take; the lease must cover it twice.
inline constexpr auto call_timeout_default = 20s;
// What of the lease must be left beyond that when a call begins: a tenth of it, at most so much.
inline constexpr auto call_margin_max = 5s;
// Tries of a call within one attempt, for what passes by itself in a moment; then the attempt ends,
// and another takes the work up when its lease is over.
inline constexpr int call_tries_max = 3;
inline constexpr auto call_retry_first = 200ms;
inline constexpr auto call_retry_max = 2s;
// The longest that an attempt waits for a lookup's grace to be over; beyond it, the next one asks.
inline constexpr auto lookup_wait_max = 30s;
// Attempts at one request in phases before a person has to look. One a minute, by the lease's end.
inline constexpr int flow_attempts_max = 20;
// Unfinished work that a completer looks at in one turn.
inline constexpr std::size_t completer_batch = 32;
// When it looks again at work whose record waits for evidence.
inline constexpr auto flow_unknown_interval = 10min;

// A message's payload, as much as a stored answer may have, and its names.
inline constexpr std::size_t message_payload_bytes_max = 1024UL * 1024;
inline constexpr std::size_t message_name_bytes_max = 255;
// What is kept of why a delivery failed.
inline constexpr std::size_t delivery_error_bytes_max = 500;
// Claimed by a relay at once: sent one after the other, each must still be covered by the lease.
inline constexpr std::size_t relay_batch = 16;
inline constexpr auto relay_interval = 200ms;
inline constexpr auto delivery_timeout_default = 10s;
// The first pause after a failure is half to all of this, each further one twice as long (full
// jitter would bring the first repeat at once), to an hour at most: in all about a day.
inline constexpr auto delivery_retry_first = 2s;
inline constexpr auto delivery_retry_max = 1h;
inline constexpr int delivery_attempts_default = 30;
inline constexpr auto retry_after_max = 24h;
// Failures in a row, of any message, after which a destination is left alone for a while; then one
// message tries it.
inline constexpr int breaker_failures = 5;
inline constexpr auto breaker_pause_first = 5s;
inline constexpr auto breaker_pause_max = 5min;
// How long delivered and discarded messages are kept for who asks what was sent.
inline constexpr auto message_retention_default = 168h;
inline constexpr auto message_reap_interval = 1min;
// Dead letters a second that a redrive may let loose on a destination that has just been mended.
inline constexpr double redrive_rate_max = 1'000;

// Asynchronous requests. How many of them one gateway runs at a time: each holds its request in
// memory, 1 MiB by default, and an upstream connection.
inline constexpr std::size_t async_running_max = 128;
// Of one route and of one tenant in it, unless a route says otherwise: neither may take all of the
// places above, nor all of what an upstream bears.
inline constexpr std::size_t async_route_default = 32;
inline constexpr std::size_t async_tenant_default = 16;
// How soon what another node accepted, or what has rested, is looked for. What this process
// accepted is looked for at once.
inline constexpr auto async_claim_interval = 500ms;
// The same where no route is asynchronous: what an earlier configuration accepted is still owed.
inline constexpr auto async_claim_interval_idle = 10s;
// Requests that were claimed and put back within a second because their route or tenant had all its
// places taken: two writes each, so that this is what one busy route may cost the others. While no
// place is free nobody behind them could run either, and it may cost less.
inline constexpr std::size_t async_put_back_max = 512;
inline constexpr std::size_t async_put_back_full_max = 64;
// Their rests: at least and at most. Between the two until their tenant has worked off what was put
// back before them, so that a backlog is not claimed again and again.
inline constexpr auto async_put_back_rest = 250ms;
inline constexpr auto async_put_back_rest_max = 30s;
// Tenants and routes whose backlog is estimated for that.
inline constexpr std::size_t async_backlogs_max = 4'096;
// Claimed requests that wait in memory for a place, and for how long: enough that a place which
// becomes free is taken at once by whoever's turn it is. With this process they are stuck until
// their lease ends.
inline constexpr std::size_t async_held_max = 64;
inline constexpr auto async_held_time_max = 5s;
// Rests after a release: half to all of this, doubled with each, at most so much; a minute is what
// a client may lose behind an upstream that is back.
inline constexpr auto async_rest_first = 1s;
inline constexpr auto async_rest_max = 60s;
// Requests whose releases are counted for that; of others the count begins anew.
inline constexpr std::size_t async_rests_kept_max = 16'384;
// What cannot be run here (its route is gone, its secret is not this one): another node may, or the
// next configuration.
inline constexpr auto async_unable_rest = 60s;
// Fields of a credential that one route keeps.
inline constexpr std::size_t async_keep_fields_max = 16;
// Looking operations up: of one scope so many a second, and so many at once. A hundred clients that
// poll each second, and far too few for whoever would guess 128 bits.
inline constexpr double lookups_per_second = 100;
inline constexpr double lookups_at_once = 200;
// Scopes whose lookups are counted; a scope that has rested needs no place.
inline constexpr std::size_t lookup_scopes_max = 16'384;

// One request to somebody outside, and what is read of its answer: a page of a provider's list has
// some hundred entries of some hundred bytes.
inline constexpr auto fetch_timeout_default = 30s;
inline constexpr std::size_t fetch_bytes_default = 8UL * 1024 * 1024;
inline constexpr std::size_t fetch_head_bytes_max = 64UL * 1024;

// A line of a provider's export, which is one charge with what hangs on it, and a CSV file's
// columns.
inline constexpr std::size_t export_line_bytes_max = 1024UL * 1024;
inline constexpr std::size_t export_columns_max = 1'024;
// Of one comparison, records and lines together: each takes about 200 bytes.
inline constexpr std::size_t comparison_entries_max = 10'000'000;
// Differences that one comparison keeps to show; what is beyond is counted.
inline constexpr std::size_t comparison_findings_max = 100'000;
// Lines that cannot be read, told one by one; what is beyond is counted.
inline constexpr std::size_t comparison_bad_lines_shown = 100;
// Lines that are kept whole until the end, because they may settle an unknown record.
inline constexpr std::size_t comparison_kept_bytes_max = 64UL * 1024 * 1024;
// Records outside of the period that are asked for one by one, before any is said to be missing.
inline constexpr std::size_t comparison_lookups_max = 100'000;
// How far the moments of the two sides may be apart: clocks, and the time that a charge takes.
inline constexpr auto comparison_slack_default = 5min;
// How late a provider's export lists what was done, unless it is told otherwise: settlement files
// come once a day. Too long a time costs patience, too short a one a second charge.
inline constexpr auto export_delay_default = 24h;
inline constexpr auto comparison_progress_interval = 2s;
// Tries of a page, which changes nothing.
inline constexpr int export_page_tries = 3;
// Pages of a list that never ends.
inline constexpr std::size_t export_pages_max = 1'000'000;
// Values of a stored answer that a listing may be asked for.
inline constexpr std::size_t listed_values_max = 8;
inline constexpr std::size_t listed_value_bytes_max = 1'024;

// Between two lines about somebody outside who fails all the time: often enough to be seen by who
// looks, and a few thousand a day.
inline constexpr auto outage_line_interval = 30s;
// Lines of a record's evidence that say of one attempt why its provider did not answer.
inline constexpr int unanswered_lines_max = 3;
// Routes with time series of their own, some 20 of each; the rest share them.
inline constexpr std::size_t metric_routes_max = 64;
// Records that one look at what is not settled goes through, for `idem status`: a second's work of
// the slowest store. Beyond them the counts are told as "at least".
inline constexpr std::size_t status_records_max = 10'000;
// Records that `idem keys list` reads to show the oldest first, and how many of them it shows.
inline constexpr std::size_t listed_records_max = 10'000;
inline constexpr std::size_t listed_rows_default = 100;
// An unknown record that is older needs a person: a provider's webhook or the first turns at it
// would have ended it.
inline constexpr auto unknown_is_old = 15min;

}  // namespace idem::inline v0_1::limits
