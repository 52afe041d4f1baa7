#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

/// @file
/// Every bound of the product with its reason. A default may be changed by configuration only
/// within the hard cap beside it.
namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// Request and response heads. RFC 9112 §3 asks for at least 8,000 bytes of request line; 16 KiB of
// head is enough for every real client seen, and bounds what one idle connection can pin.
inline constexpr std::size_t request_line_bytes_max = 8'192;
inline constexpr std::size_t head_bytes_max = 16UL * 1024;
inline constexpr std::size_t head_fields_max = 100;
// The longest registered method has 17 bytes (UPDATEREDIRECTREF).
inline constexpr std::size_t request_method_bytes_max = 32;
// RFC 9112 §2.2 asks for one; clients that end a body with a stray CRLF send no more than two.
inline constexpr std::size_t head_empty_lines_max = 2;
// From a head's first byte to its last: honest heads take milliseconds, and the slowest link seen
// needs a minute. More only keeps a place for a client that drips.
inline constexpr auto head_time_default = 10s;
inline constexpr auto head_time_cap = 60s;

// A keyed body is held whole, because the whole of it is fingerprinted before the reserve.
inline constexpr std::size_t request_body_bytes_default = 1024UL * 1024;
inline constexpr std::size_t request_body_bytes_cap = 64UL * 1024 * 1024;
// The part of a body in memory; the rest goes into an unlinked file. Nearly every API call is
// smaller, so it never touches a file; and all connections (connections_default) that fill this
// hold 1 GiB. It is also the size of one write to the file.
inline constexpr std::size_t request_body_memory_max = 64UL * 1024;
// Bodies in files at one time, of the whole process: 64 of the largest. The files may share a disk
// with the store, which uploads must not be able to fill.
inline constexpr std::uint64_t spill_bytes_max = 4ULL * 1024 * 1024 * 1024;
// What a large body must leave free on its disk: a store that cannot write ends the process, so
// what its log and its next checkpoints need stays out of reach of uploads.
inline constexpr std::uint64_t spill_disk_free_min = 64UL * 1024 * 1024;
// A body slower than this is an attack or a dead link; neither may pin a connection.
inline constexpr std::size_t body_rate_bytes_per_second_min = 1024;
// A body's time beside that rate: a round trip lost and sent again, several times over.
inline constexpr auto body_grace_default = 10s;
inline constexpr auto body_grace_cap = 60s;
// Unsent bytes that the kernel holds for one client; without it an answer that nobody reads takes
// the kernel's 4 MiB, times the number of such clients.
inline constexpr int unsent_bytes_max = 128 * 1024;
// The time for each slice of an answer, 64 KiB at most: about 2 KiB/s.
inline constexpr auto write_time_default = 30s;
inline constexpr auto write_time_cap = 10min;

inline constexpr std::size_t response_body_bytes_default = 1024UL * 1024;
// Larger bodies are digested on a thread of their own, beside the loop: 64 MiB of JSON take four
// seconds, this a sixtieth of one.
inline constexpr std::size_t digest_on_loop_bytes_max = 256UL * 1024;
// Stored answers on their way to clients, each counted once for all its clients, if it is larger
// than the second number (connections bound the smaller ones). The gateway reads an answer without
// room again later.
inline constexpr std::size_t answers_under_way_bytes = 256UL * 1024 * 1024;
inline constexpr std::size_t answer_counted_bytes_min = 64UL * 1024;

// Names an operator may add to what is replayed; there are only six to add.
inline constexpr std::size_t replay_fields_max = 16;

// A client has its write time for each such slice of an answer: a slow reader is served.
inline constexpr std::size_t write_slice_bytes = 64UL * 1024;

// One chunk-size line with its extensions; more is only ever an attack.
inline constexpr std::size_t chunk_line_bytes_max = 256;
inline constexpr std::size_t trailer_bytes_max = 8UL * 1024;
// Interim answers before a final one; a storm of them must end.
inline constexpr int interim_responses_max = 16;

inline constexpr std::size_t key_bytes_max = 255;
// How far ahead of ours a client's clock may be, for the time that it put into a key or beside it.
// Phones without a network's time are off by minutes.
inline constexpr auto key_time_skew = 5min;
inline constexpr std::size_t scope_bytes_max = 255;
// Addresses in front of a gateway: load balancers, not a list of clients.
inline constexpr std::size_t trusted_proxies_max = 64;

// A signed token. Half of the largest head; those with a dozen groups in them have 2 or 3 KiB.
inline constexpr std::size_t jwt_bytes_max = 8UL * 1024;
inline constexpr std::size_t jwt_depth_max = 32;  // Of its JSON; claims nest two or three deep.
// Keys of one issuer: the old and the new one, for a handful of algorithms.
inline constexpr std::size_t jwt_keys_max = 64;
inline constexpr std::size_t jwt_key_file_bytes_max = 256UL * 1024;
// Smaller keys can be broken (RFC 7518 §3.3); larger ones cost milliseconds for each request.
inline constexpr int jwt_rsa_bits_min = 2'048;
inline constexpr int jwt_rsa_bits_max = 8'192;
// RFC 7518 §3.2: at least as long as the digest.
inline constexpr std::size_t jwt_secret_bytes_min = 32;
// Clocks of an issuer and of ours, both kept by NTP, are never a minute apart.
inline constexpr auto jwt_leeway_cap = 60s;
// How long a verified token needs no second verification (0.06 to 0.46 ms on a busy host). Its own
// expiry may end that sooner, a reload always does. Of one loop: a thousand callers.
inline constexpr auto jwt_cache_time = 60s;
inline constexpr std::size_t jwt_cache_entries_max = 1'024;

// An authoriser that takes seconds is down. Nothing is reserved meanwhile, so the cap may be
// generous.
inline constexpr auto authorize_timeout_default = 5s;
inline constexpr auto authorize_timeout_cap = 60s;
// How long a revoked caller may still be let through; off by default.
inline constexpr auto authorize_cache_cap = 60s;
// How old an authorisation may be when a decision uses it: a client can make its body or its wait
// as long as it likes.
inline constexpr auto authority_age_max = 1s;
// Of one loop; an entry is a digest and a moment.
inline constexpr std::size_t authorize_cache_entries_max = 4'096;
// A refusal's body that is passed on; a larger refusal goes without its body.
inline constexpr std::size_t authorize_body_bytes_max = 16UL * 1024;
inline constexpr std::size_t json_depth_max = 64;

// Routes of one table. A request is compared with each of them in turn, and a new table with the
// old one route by route.
inline constexpr std::size_t routes_max = 1'024;
// A route's name; it lies in every record of the operation.
inline constexpr std::size_t operation_bytes_max = 255;
// Operations that a check of a new table remembers as good, so that it does not check each record
// anew.
inline constexpr std::size_t operations_remembered_max = 4'096;
// Secrets in use at one time: each costs a request three more digests and the store one more look.
inline constexpr std::size_t secrets_max = 8;
// A file of key material: enough for any encoding of a key, and no disk image by mistake.
inline constexpr std::size_t secret_file_bytes_min = 32;
inline constexpr std::size_t secret_file_bytes_max = 4'096;

// JSON Pointers or field names in one list of a route's fingerprint rule. Each name of a body is
// compared with all pointers that lead through its object.
inline constexpr std::size_t fingerprint_rule_entries_max = 64;
// Each costs 64 bytes while it is sorted; a form of more fields is digested byte for byte.
inline constexpr std::size_t form_fields_max = 16'384;
// Of one multipart body: more than any upload form has, and 128 KiB while they are found.
inline constexpr std::size_t multipart_parts_max = 4'096;

// Longer than the idle time of the load balancers in front of us (60 s), so that they close first
// and do not meet our closing with a request. Beyond an hour a place is only ever lost.
inline constexpr auto keep_alive_idle_default = 75s;
inline constexpr auto keep_alive_idle_cap = 1h;
inline constexpr auto drain_time_max = 30s;
// Reading on after our last answer, so that a reset does not erase it (RFC 9112 §9.6). Any client
// is given that much; one that still sends then is read on, as nginx does it (lingering_time,
// lingering_timeout), while it keeps to body_rate_bytes_per_second_min and has one of these places.
inline constexpr auto linger_brief_time = 2s;
inline constexpr std::size_t linger_brief_bytes = 256UL * 1024;
inline constexpr auto linger_time_max = 30s;
inline constexpr auto linger_silence_max = 5s;
// Each has a descriptor and 32 KiB, and may be read as fast as it sends. One address has a quarter:
// it may be that of a proxy.
inline constexpr std::size_t lingering_max = 1'024;
inline constexpr std::size_t lingering_per_address_max = 256;

// When the gateway stops, a request on its way has so long to arrive: one that drips must not keep
// the process from ending.
inline constexpr auto drain_receive_max = 5s;
// The same for a client that has not taken its answer yet. Both are less than drain_time_max.
inline constexpr auto drain_send_max = 10s;

inline constexpr auto upstream_timeout_default = 30s;
// The gateway reads an answer without a client on for so long, so that the upstream does not regard
// a closed connection as a wish to cancel the work. A longer answer has no end.
inline constexpr auto unread_answer_max = 10min;
inline constexpr auto connect_timeout_default = 2s;
// A keyed request never uses a pooled connection older than this.
inline constexpr auto upstream_keep_alive_idle = 1s;
// Longer than the pings of every WebSocket server in use, and short enough that a peer that has
// vanished does not hold its connection for ever.
inline constexpr auto tunnel_idle_default = 10min;
inline constexpr std::size_t upstream_idle_connections_per_loop_max = 512;

// How long a client may wait for another one's attempt: half of what load balancers allow a
// connection to be silent (60 s), and no attempt takes longer by default. Beyond the cap hardly any
// client is still there.
inline constexpr auto wait_default = 30s;
inline constexpr auto wait_cap = 5min;
// How many may wait at one key: all connections of one address. Each costs 15 KiB with its
// connection, and each has an answer written when the attempt ends.
inline constexpr std::size_t waiters_per_key_max = 4'096;
// The share of all connections that may wait is one over this: the other half is for requests that
// run, and for short ones.
inline constexpr std::size_t waiters_connections_divisor = 2;
// Waiters woken before a loop serves others again: a few milliseconds of writing answers.
inline constexpr std::size_t wakes_per_turn = 64;

inline constexpr auto lease_default = 60s;
// protocol.md §15: how long a handler in a library may have its lease renewed.
inline constexpr auto run_default = 10min;
// What the lease must exceed the dispatch timeout by: covers the settling write and clock grain.
inline constexpr auto lease_margin = 5s;
inline constexpr auto retention_default = 24h;
inline constexpr auto tombstone_default = 720h;
// A shorter one must be acknowledged as one of 0 must (protocol.md §15): clients retry for a day.
inline constexpr auto tombstone_unacknowledged_min = 24h;

// Open client connections of one listener; more are closed at accept. Each may hold its 32 KiB
// buffer: half a gibibyte by default, eight at the cap.
inline constexpr std::size_t connections_default = 16'384;
inline constexpr std::size_t connections_cap = 262'144;
// Of one IPv4 address or IPv6 /64: a quarter, so that no single client can keep all others out, and
// still enough for a proxy in front of us with a full pool.
inline constexpr std::size_t connections_per_address_default = 4'096;
// Refused connections are reported no more often, with their number.
inline constexpr auto refusal_log_interval = 1s;
// Answers that a loop replayed lately, as bytes on the wire, so that frequent retries do not ask
// the store. The loop reads them anew after a while, because another node may have changed the
// record.
inline constexpr std::size_t replay_cache_bytes = 4 * 1024UL * 1024;
inline constexpr std::size_t replay_cache_answer_bytes_max = 64 * 1024UL;
inline constexpr auto replay_cache_time_max = 60s;
// What one costs beside its own bytes.
inline constexpr std::size_t replay_cache_entry_bytes = 320;
// Texts for scopes that each loop keeps for its next requests.
inline constexpr std::size_t scope_rooms_max = 256;
// Calls that may wait in front of a store; above it new work is refused, owners' verbs never.
inline constexpr std::size_t store_queue_max = 65'536;
// Calls in one commit: larger groups add latency and no throughput.
inline constexpr std::size_t commit_group_max = 512;
// How long a call without a waiting client is kept back for a group to join: a busy store has one
// within a fraction of that.
inline constexpr auto store_patience = 2ms;
// How long a client waits while its settling write is repeated; the repeats go on after that.
inline constexpr auto settle_wait_max = 10s;
// Attempts whose settling write has not succeeded yet; each holds an answer in memory.
inline constexpr std::size_t unsettled_attempts_max = 1'024;
// A store at the other end of a wire: how long one of its statements, or a connection, may take.
// Longer than a disk that is behind; a client waits no longer for its settling write.
inline constexpr auto store_reply_max = 10s;
inline constexpr auto store_connect_max = 5s;
// Setting up a schema, or looking at every record before names change.
inline constexpr auto store_migration_max = 10min;
// How an upgrade of tables waits for open transactions. One try ends far below PostgreSQL's
// deadlock_timeout (1 s), and reserves queue behind it for so long only; in the pauses they go on.
// 25 s in all: below the 30 s for which another start waits for its turn.
inline constexpr auto migration_lock_try = 100ms;
inline constexpr auto migration_lock_pause = 400ms;
inline constexpr int migration_lock_rounds = 50;
// Statements of a service that the embedded store, or a session of PostgreSQL, keeps prepared: more
// than a handful of handlers have, and a bound for services that write values into their texts.
inline constexpr std::size_t service_statements_max = 128;
// A session of PostgreSQL prepares no longer ones: most of them have values in their text.
inline constexpr std::size_t service_statement_bytes_max = 4'096;
// Connections to a PostgreSQL on which services run their transactions, beside the store's own
// five: more than its usual number of cores, and few enough for some ten nodes within its 100
// connections.
inline constexpr std::size_t transaction_connections_max = 16;
// How long a caller waits for one of them.
inline constexpr auto transaction_wait_max = 5s;
// Threads of an engine for transactions of callers that must not block: as many as connections.
inline constexpr std::size_t transaction_threads_max = transaction_connections_max;
// Requests that an engine serves at a time without a thread each: as many as a gateway's
// connections. Beyond them it answers 503.
inline constexpr std::size_t served_without_thread_max = 16'384;
// Former names of an operation: each is one more record to look for in every reserve.
inline constexpr std::size_t former_operations_max = 16;
// How long a transaction of a service waits for a lock, its record's or one of a business row.
inline constexpr auto transaction_lock_max = 2s;
// Runs of a transaction that the database ends in favour of another (a deadlock, a serialization
// failure, a lock that was not free in time), the pause before the second run, doubled each time,
// and the time after which no run begins. In a ring of N the database ends one and N - 1 go on, so
// a few runs are enough; each may have waited for the lock. Much less than a lease.
inline constexpr int transaction_tries_max = 8;
inline constexpr auto transaction_retry_first = 10ms;
inline constexpr auto transaction_retries_max = 10s;
// How long its work may pause between two statements before the server ends it: the record is
// locked meanwhile, so a foreign call does not belong there. Less than a lease.
inline constexpr auto transaction_idle_max = 30s;
// One statement of its work; the same.
inline constexpr auto transaction_statement_max = 60s;
// Parameters of one statement: what the protocol can count (PostgreSQL, "Message Formats", Bind).
inline constexpr std::size_t statement_params_max = 65'535;
// Calls of one statement. Larger ones add latency and hardly any throughput.
inline constexpr std::size_t store_statement_calls_max = 256;
// How long, and how often, the store repeats a call whose reply was lost or whose record is locked
// by another transaction.
inline constexpr auto store_repeat_max = 3s;
inline constexpr auto store_repeat_interval = 50ms;
// How long a reserve waits for another transaction that holds its record: longer than a batch of
// another node takes.
inline constexpr auto store_held_max = 300ms;
// What the answers in one statement may take together: more than one of them only below that.
inline constexpr std::size_t store_statement_bytes_max = 8UL * 1024 * 1024;
// Records that are read by one statement, each perhaps with an answer of some MiB.
inline constexpr std::size_t store_statement_finds_max = 16;
// Between attempts to reach a store that is down.
inline constexpr auto store_reconnect_min = 100ms;
inline constexpr auto store_reconnect_max = 2s;
// The largest reply of a Redis: a record with the largest answer, or the names of all records of
// one bucket. A larger one comes from no Redis, or no store of ours.
inline constexpr std::size_t redis_line_max = 64UL * 1024;
inline constexpr std::size_t redis_reply_depth_max = 8;
inline constexpr std::size_t redis_reply_bytes_max = 256UL * 1024 * 1024;
inline constexpr std::size_t redis_reply_items_max = 8UL * 1024 * 1024;
// Connections to one Redis: it reads 16 KiB of each before it syncs its log and answers.
inline constexpr unsigned redis_lanes = 8;
// How far a step's estimate of the server's clock may be off when the server runs it; otherwise the
// step is sent anew. Far below any lease.
inline constexpr auto redis_clock_slack = 1s;
// Redirections of one command before it fails: a cluster that moves slots needs two.
inline constexpr int redis_redirections_max = 5;
// Running attempts of this process whose records are kept in memory, so that an owner's verb is one
// round trip; for others it is two.
inline constexpr std::size_t store_attempts_kept_max = 65'536;
// How often the server settings that may lose data are checked.
inline constexpr auto redis_check_interval = 5s;
// How often one step is made anew because other processes wrote its record meanwhile.
inline constexpr int compare_and_set_races_max = 64;
// How old a process's knowledge of a scope's usage may be (to read it is 256 questions in one
// flight): near the quota, and if other processes are far from using it up meanwhile.
inline constexpr auto store_usage_age_near = 1s;
inline constexpr auto store_usage_age_far = 60s;
// Pending requests that a claim reads: at first, and at most, if other processes claim at the same
// time or the sweeper is behind.
inline constexpr std::size_t claims_seen_min = 8;
inline constexpr std::size_t redis_claims_seen_max = 32'768;
// Buckets whose lists a sweep compares with their counters: 256 are done within 32 sweeps, and it
// asks about each bucket once anyway.
inline constexpr std::size_t redis_compared_buckets = 8;
// Pages of keys that a sweep reads to fill lost lists again; each lets the sweep wait for a reply.
inline constexpr int redis_relist_pages = 64;
// A bucket that stays short of its counters has lost records; all keys are read for it no sooner.
inline constexpr auto redis_relist_again_after = 10min;
// After how long a change of the identity counts as abandoned by the node that began it: longer
// than a node takes over all buckets, retries included.
inline constexpr auto redis_change_abandoned = 15s;
// A cache in front of a shared store: a call that takes longer counts as failed. A tenth of what a
// client would notice, and far more than a healthy cache needs.
inline constexpr auto cache_reply_max = 100ms;
// How long the cache's "in progress" is used without asking the deciding store: as long as a herd
// of duplicates lasts, and too short for a client to wait for an attempt that ended elsewhere.
inline constexpr auto cache_in_flight_max = 2s;
// How far the estimate of the deciding store's clock may be off, and how old it may be.
inline constexpr auto cache_clock_margin = 2s;
inline constexpr auto cache_clock_age_max = 10min;
// Larger answers always come from the deciding store.
inline constexpr std::size_t cache_body_max = 256UL * 1024;
// Entries on their way; above it they are not written.
inline constexpr std::size_t cache_puts_max = 4'096;
inline constexpr std::size_t cache_unsent_max = 16UL * 1024 * 1024;
// How often a store that closes looks whether its cache is done.
inline constexpr auto cache_close_interval = 1ms;
// How often the tables of days are made and dropped: they are made two days ahead.
inline constexpr auto store_days_interval = 10min;
// Counts of ended sessions, of so many scopes, that are summed up at the same time.
inline constexpr int usage_rows_folded = 50'000;
// Calls in a row that a store did not answer, and over how long, before the circuit breaker opens:
// a batch that is lost with its connection fails many calls at once, and the next connection
// answers.
inline constexpr int store_failures = 5;
inline constexpr auto store_failing_time = 1s;
// Pauses between probes. The store's return may go unnoticed for the longest one.
inline constexpr auto store_probe_first = 200ms;
inline constexpr auto store_probe_max = 5s;
// Reserves with a lost reply that are remembered, so that their repeats are let through; beyond it
// the oldest are forgotten, and their owners release them by token. 1.5 MiB at most.
inline constexpr std::size_t store_doubts_max = 16'384;
// Damaged records with a log line are remembered, so that each has only one; beyond it the lines
// begin anew. 64 KiB.
inline constexpr std::size_t damaged_logged_max = 1'000;
// Attempts whose scope is remembered, because their answers are sealed for it; for others the store
// is asked. Beyond it the oldest half is forgotten. About 8 MiB.
inline constexpr std::size_t sealed_scopes_max = 65'536;
// How often a reserve in doubt is asked in all (protocol.md §4).
inline constexpr int reserve_rounds_max = 5;

// No lease, retention or delay is longer: moments stay far from the end of a 64-bit millisecond
// count.
inline constexpr auto duration_max = std::chrono::hours(24) * 365 * 100;
// Fences taken from the store in one write; what is left of a block at a crash is skipped.
inline constexpr std::uint64_t fence_block = 65'536;
// How much store time a crash may forget. It is added back by the next start's clock, so that
// nothing depends on it but a start on another boot with a wall clock that has gone backwards.
inline constexpr auto store_clock_persist_interval = 1s;
// The write-ahead log is copied into the database once it has so many pages (4 MiB): rarer
// checkpoints write a hot page once instead of often, longer ones stop the store's thread for
// longer (docs/internals/sqlite.md).
inline constexpr int sqlite_wal_pages_max = 1'024;
// Enough for the ends of the tables, where all is appended; the kernel's cache is better at the
// rest. SQLite 3.40 walks the whole of its page cache at a commit that had split a page.
inline constexpr std::size_t sqlite_cache_bytes = 16 * 1024UL * 1024;
// Bytes of a commit that are gathered before they are written to the log. SQLite's own file layer
// takes less than 128 KiB at a time, and fails at just that.
inline constexpr std::size_t sqlite_log_buffer_bytes = 96 * 1024UL;
// The longest value that a service's own connection must allow: a record with the largest answer.
inline constexpr int sqlite_length_min = 128 * 1024 * 1024;
// Rows that a listing reads before waiting calls have their turn: less work than the commit for
// which those wait in any case.
inline constexpr std::size_t list_slice_rows = 128;

// The embedded store numbers its rows upwards from 1; a number from here on is none of its own, and
// far enough from the end of 64 bits to count on.
inline constexpr std::int64_t row_numbers_end = std::int64_t{1} << 62;
// Unused cells between the running rows that a start looks for; those above it are used from the
// next start on. A damaged cell number must not make it gather a list without end.
inline constexpr std::size_t running_gaps_max = 65'536;

// A configuration file: a thousand routes with every setting stay below this.
inline constexpr std::size_t config_file_bytes_max = 1024UL * 1024;
// The deepest setting lies five deep (a route's list); more is a mistake or a bomb.
inline constexpr std::size_t config_depth_max = 8;
// Errors of one file that are reported at once: a screen of them.
inline constexpr std::size_t config_complaints_max = 20;
// Entries of one list or map of settings.
inline constexpr std::size_t config_entries_max = 64;
// Stored with each record, as the operation.
inline constexpr std::size_t route_name_bytes_max = 128;
inline constexpr std::size_t route_path_bytes_max = 1'024;
// Unknown records whose moments are kept in memory, 72 bytes each, to find the oldest. If there are
// more, the rest are read again once these are settled.
inline constexpr std::size_t unknowns_tracked_max = 65'536;

// The name of a journal: a purpose and a digest or a name of an operator's.
inline constexpr std::size_t journal_name_bytes_max = 255;
// One line of a journal: a decision with the longest reason and evidence and both states, or a
// change of a few hundred settings. The embedded store writes it between two batches.
inline constexpr std::size_t journal_line_bytes_max = 64UL * 1024;
// Lines and bytes of one reply: what the embedded store reads while requests wait behind it.
inline constexpr std::size_t journal_read_lines_max = 1'000;
inline constexpr std::size_t journal_read_bytes_max = 1024UL * 1024;

// One page of the operator's listing: what a person pages through, and what a script may ask for.
inline constexpr std::size_t list_page_default = 100;
inline constexpr std::size_t list_page_max = 1'000;
// An answer of 1 MiB in base64 with its fields.
inline constexpr std::size_t admin_body_bytes_max = 2UL * 1024 * 1024;
// What an operator writes into the evidence log, which is never shortened: a ticket's number and a
// few sentences; evidence may be a provider's answer.
inline constexpr std::size_t reason_bytes_max = 1'024;
inline constexpr std::size_t evidence_bytes_max = 8'192;
inline constexpr std::size_t operator_name_bytes_max = 64;
// Some 1,500 tokens of the admin API, 160 bytes a line. All are read again when the file changes.
inline constexpr std::size_t admin_tokens_bytes_max = 256UL * 1024;
// A file with one token, and what an editor may add.
inline constexpr std::size_t admin_token_file_bytes_max = 4'096;
// How much later than the end of the lease negative evidence must have been observed (protocol.md
// §19): longer than known providers need to list executed work.
inline constexpr auto evidence_grace_default = 60s;
// Tenants with a time series of their own; the rest share one. A series costs a monitoring system
// kilobytes, and a scope may be the client's to choose.
inline constexpr std::size_t metric_tenants_max = 64;
// Lines of one event about requests that one loop writes in a second; the next line has the number
// of those left out. All errors are written.
inline constexpr unsigned request_lines_per_second_max = 50;

// Shadow routes: requests that are observed at a time, as many as connections by default. A store
// that hangs holds them all; what comes beyond passes unobserved. Some 700 bytes each.
inline constexpr std::size_t shadow_observations_max = 16'384;
// Copies of heads and bodies of observed requests, in all: one of the largest bodies.
inline constexpr std::size_t shadow_bytes_max = 64UL * 1024 * 1024;
// Larger bodies are digested beside the loop: this takes a millisecond, which no request notices.
inline constexpr std::size_t shadow_digest_on_loop_bytes_max = 16UL * 1024;
// A store's answer to a reserve that comes later says nothing about the moment of the request.
inline constexpr auto shadow_store_wait_max = 5s;
// How often the end of an attempt is written, and the first pause between, doubled each time: a
// store that fails for longer lets the attempt's lease run out.
inline constexpr int shadow_settle_tries_max = 4;
inline constexpr auto shadow_settle_retry_first = 200ms;
// How long a stop waits for the ends of the last attempts.
inline constexpr auto shadow_drain_max = 250ms;
// The report in memory: routes, tenants of a route, clients of a tenant, rows in all (some 300
// bytes each), the newest examples of each kind of a route. The rest share a row.
inline constexpr std::size_t shadow_routes_max = 256;
inline constexpr std::size_t shadow_tenants_max = 64;
inline constexpr std::size_t shadow_clients_max = 16;
inline constexpr std::size_t shadow_rows_max = 8'192;
inline constexpr std::size_t shadow_examples_max = 5;
inline constexpr std::size_t shadow_path_bytes_max = 256;

// What a record counts for in its scope's quota: about the bytes of one with a small answer in
// PostgreSQL, with its indexes, due batches and free room. An answer above small_answer_bytes_max,
// which PostgreSQL stores apart, counts in addition, and so does a stored request.
inline constexpr std::uint64_t record_charge = 1'024;
inline constexpr std::uint64_t small_answer_bytes_max = 1'000;
inline constexpr std::uint64_t tombstone_charge = 256;
// The default for each scope: above ten million keys with answers of 200 bytes, which count for 9.6
// GiB, and their tombstones.
inline constexpr std::uint64_t stored_bytes_default = 16ULL * 1024 * 1024 * 1024;
inline constexpr std::uint64_t stored_bytes_cap = 1ULL << 41;
// New keys a second of one scope; a store of one machine bears less from all scopes together.
inline constexpr std::uint32_t new_keys_per_second_cap = 1'000'000;
inline constexpr std::uint64_t active_keys_cap = 1ULL << 40;
// Retry-After if keys have to expire first: retention divided by their number, which is a poor
// guess for few keys.
inline constexpr auto quota_retry_min = 1s;
inline constexpr auto quota_retry_max = 1h;

inline constexpr std::size_t sweep_batch = 256;
// How far the embedded store's clock follows the wall clock over one restart of the machine.
inline constexpr auto store_clock_jump_max = 24h;
// How far it may be from the wall clock for a moment that an operator wrote down to be compared
// with it: as far as clocks of two machines usually are, which is what the evidence grace is for.
inline constexpr auto store_clock_apart_max = 2s;
// How often a service looks for work of a dead attempt.
inline constexpr auto complete_interval_default = 1s;

}  // namespace idem::inline v0_1::limits
