#pragma once

#include <chrono>
#include <cstddef>

/// @file
/// Limits of the console's logins, each with its reason.

namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// A browser that asks nothing for so long is logged out: it may stand in an office. A page asks
// for half an hour behind the last key or click (console/src/state/live.ts).
inline constexpr auto console_idle_max = 30min;
// A night's shift, and then a new login.
inline constexpr auto console_session_max = 12h;
// Sessions of one process, each below 1 KiB. With more, the one that was used least recently ends.
inline constexpr std::size_t console_sessions_max = 1'000;
// Of one token, whose holder ends nobody else's sessions by many logins: a person's browsers.
inline constexpr std::size_t console_sessions_of_token_max = 20;
// From `idem console` to the browser: long enough to paste an address, short enough that one in a
// history or a log opens nothing.
inline constexpr auto console_code_max = 2min;
inline constexpr std::size_t console_codes_max = 100;
inline constexpr std::size_t console_codes_of_token_max = 5;

// The charts of the overview: an hour in spans of ten seconds, a day in spans of five minutes. In
// memory: 648 samples of about 240 bytes.
inline constexpr auto samples_interval = 10s;
inline constexpr std::size_t samples_of_hour = 360;
inline constexpr std::size_t samples_short_per_long = 30;
inline constexpr std::size_t samples_of_day = 288;
// Records and messages are counted by the store: as seldom as a slow scraper of /metrics asks.
inline constexpr std::size_t samples_per_count = 6;

// The newest retries, for an operator who looks for the client that errs: of each kind so many in
// each of the stripes, a few hundred bytes each.
inline constexpr std::size_t retries_stripes = 8;
inline constexpr std::size_t retries_kept_of_stripe = 128;
inline constexpr std::size_t retries_listed_max = 200;
// Of a misuse its parts are digested again, up to 45 times (explained_fingerprint.cpp): one each
// second of one loop, and no larger body, so that this costs a loop a hundredth of its time.
inline constexpr auto misuse_compared_interval = 1s;
inline constexpr std::size_t misuse_compared_bytes_max = 4UL * 1024;

}  // namespace idem::inline v0_1::limits
