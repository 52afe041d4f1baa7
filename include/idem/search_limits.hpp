#pragma once

#include <chrono>
#include <cstddef>

/// @file
/// Limits of the search for records by a value, each with its reason.
namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// Pointers into requests, and as many into answers: each is one write of the store for a request.
inline constexpr std::size_t search_pointers_max = 8;
inline constexpr std::size_t search_pointer_bytes_max = 256;
// An order's number, a provider's id or a trace's id; a longer value is a text, and nobody's name.
inline constexpr std::size_t search_value_bytes_max = 256;
// To look for values in a larger body on a loop would delay others: this takes a millisecond.
inline constexpr std::size_t search_body_bytes_max = 16UL * 1024;
// Records that are found by one value on one day. A value that more of them have distinguishes
// none: a search says that there are more.
inline constexpr std::size_t search_lines_max = 100;
// Values that wait to be written, about 150 bytes each: some seconds of a busy gateway.
inline constexpr std::size_t search_waiting_max = 16'384;
// Requests that are stored and wait, whose retries a loop recognises: about 100 bytes each.
inline constexpr std::size_t search_pending_max = 4'096;
// Writes at a time: a store that commits many calls at once commits these with those of requests,
// and on PostgreSQL, where they have one connection with accepts of stored requests and with
// operators, nobody waits for more than so many of them.
inline constexpr std::size_t search_writes_max = 8;
// How often a write is tried while the store fails or others write the same value, and how long it
// rests after a failure. What waits meanwhile stays in memory.
inline constexpr int search_tries_max = 8;
inline constexpr auto search_retry = 500ms;
// What a stop waits for the last ones: a second try after a failure.
inline constexpr auto search_farewell = 1s;
// Days that a search reads, each with a few calls of the store: some years of retention.
inline constexpr std::size_t search_days_max = 2'000;
// How often the process that reaps looks for days that are over, and what it forgets at a time:
// few calls beside requests, and each slice has at least as long a rest as it took.
inline constexpr auto search_forget_interval = 60s;
inline constexpr auto search_forget_rest_min = 10ms;
inline constexpr std::size_t search_forget_slice = 32;

}  // namespace idem::inline v0_1::limits
