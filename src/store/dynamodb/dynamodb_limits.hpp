#pragma once

#include <idem/limits.hpp>

/// The bounds of the store on DynamoDB, each with its reason; beside those of all stores.
namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// Connections to the service, and requests under way; further ones wait. An answer takes some 5
// ms, so these carry about 10,000 requests a second. The rest are for readings of the identity.
inline constexpr std::size_t dynamodb_connections_max = 64;
inline constexpr std::size_t dynamodb_requests_max = 60;
// Questions of one call that are under way at once: less than that, so that it stops no other call.
inline constexpr std::size_t dynamodb_questions_at_once = 32;
// To reach it, and for one whole answer: a few times what the slowest of 10,000 takes. Three tries
// fit into a lease of 10 s.
inline constexpr auto dynamodb_connect_max = 2s;
inline constexpr auto dynamodb_answer_max = 3s;
// How long the addresses of the service's name are used: as long as libcurl keeps them by default,
// and the TTL of its names.
inline constexpr auto dynamodb_name_kept = 60s;
// The largest answer: a page of a query has 1 MiB at most, in base64 and JSON; and then some.
inline constexpr std::size_t dynamodb_answer_bytes_max = 16UL * 1024 * 1024;
// Pauses before a repeat: any time up to the first, which doubles with each try.
inline constexpr auto dynamodb_backoff_first = 25ms;
inline constexpr auto dynamodb_backoff_max = 1s;
// Until a table that is being made can be used.
inline constexpr auto dynamodb_table_max = 2min;
// Answers in a row that must agree on another time than the one that is known, before it counts:
// one server of the service may have a wrong clock.
inline constexpr int dynamodb_clock_answers = 8;
// Credentials are fetched anew so long before they expire: sources renew them some 5 minutes ahead.
inline constexpr auto dynamodb_credentials_margin = 3min;
inline constexpr auto dynamodb_credentials_pause = 5s;
inline constexpr auto dynamodb_credentials_max = 2s;
// An item may have 400 KB (DynamoDB, "Quotas"): a record, and each of these.
inline constexpr std::size_t dynamodb_inline_bytes_max = 128UL * 1024;
inline constexpr std::size_t dynamodb_inline_log_bytes_max = 32UL * 1024;
inline constexpr std::size_t dynamodb_piece_bytes = 350UL * 1024;
// The age from which pieces that no record names are removed: far more than a write may take.
inline constexpr auto dynamodb_orphan_age = 1h;
// How long an item stays behind its record, so that no write that is still on its way can make the
// record again. A signature is valid for 5 minutes, so nothing older is accepted.
inline constexpr auto dynamodb_blank_time = 15min;
// Lines of a journal that one write of its head appends: their items are written at once before it.
inline constexpr std::size_t dynamodb_lines_at_once = 64;
// How long changes of the counters are gathered before they are written.
inline constexpr auto dynamodb_counting_pause = 200ms;
// How long a reading of a scope's usage waits for what this process still adds to it. An addition
// takes some 5 ms; a scope that is always busy is read with an error of those under way.
inline constexpr auto dynamodb_adding_max = 100ms;
// Pending requests that a claim reads at most: each reading is paid for.
inline constexpr std::size_t dynamodb_claims_seen_max = 4'096;
// Records of one page while all are read for a change of the identity: a page ends at 1 MiB.
inline constexpr std::size_t dynamodb_survey_rows = 1'000;
// How often the records of waiters are read. Each reading is paid for.
inline constexpr auto dynamodb_look_interval = 200ms;

}  // namespace idem::inline v0_1::limits
