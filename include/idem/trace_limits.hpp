#pragma once

#include <chrono>
#include <cstddef>

/// @file
/// Limits of traces, each with its reason.
namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// Finished requests that wait to be sent, about a kilobyte each: some seconds of a busy gateway. A
// collector that answers later than that costs spans.
inline constexpr std::size_t traces_waiting_max = 16'384;
// Of one sending: some megabytes of JSON, while collectors take 20 MiB by default.
inline constexpr std::size_t traces_per_sending = 2'048;
inline constexpr auto traces_interval = 200ms;
// One sending, and how often one is tried while the collector asks for that or does not answer.
inline constexpr auto traces_timeout = 5s;
inline constexpr int traces_tries_max = 3;
inline constexpr auto traces_retry_first = 500ms;
inline constexpr auto traces_retry_max = 5s;
// What a stop waits for the last ones.
inline constexpr auto traces_farewell = 500ms;
// Of the collector's answer, which says how many spans it refused.
inline constexpr std::size_t traces_answer_bytes_max = 64UL * 1024;

}  // namespace idem::inline v0_1::limits
