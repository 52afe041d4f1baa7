#pragma once

#include <chrono>
#include <cstddef>

/// @file
/// Limits of the console's logins, each with its reason.

namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// A browser that nobody uses for so long is logged out: it may stand in an office.
inline constexpr auto console_idle_max = 1h;
// A night's shift, and then a new login.
inline constexpr auto console_session_max = 12h;
// Sessions of one process, each below 1 KiB. With more, the one that was used least recently ends.
inline constexpr std::size_t console_sessions_max = 1'000;
// From `idem console` to the browser: long enough to paste an address, short enough that one in a
// history or a log opens nothing.
inline constexpr auto console_code_max = 2min;
inline constexpr std::size_t console_codes_max = 100;

}  // namespace idem::inline v0_1::limits
