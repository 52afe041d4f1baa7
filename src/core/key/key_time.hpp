#pragma once

#include <idem/record.hpp>

#include <optional>
#include <string_view>

/// When a client says that it made a key, or sent a request first (protocol.md §8).
namespace idem {

/// A moment by a client's clock, which is anybody's.
using ClientTime = std::chrono::sys_time<Millis>;

/// What is asked of the time in a key.
enum class KeyTimeRule : std::uint8_t {
  ignored,
  checked,   ///< Where the key carries one, it must be neither too old nor ahead.
  required,  ///< And each key must carry one.
};

/// When a key was made: a UUID of version 7 (RFC 9562 §5.7) in its usual form, or a ULID, in upper
/// or lower case. Nothing for all others. 26 digits are a number: of the ULIDs of this century one
/// in a hundred million looks so.
std::optional<ClientTime> time_of_key(std::string_view key) noexcept;

/// IMF-fixdate (RFC 9110 §5.6.7), which is what Repeatability-First-Sent is: "Sun, 06 Nov 1994
/// 08:49:37 GMT". Nothing for other forms, for a day that the calendar does not have or that is not
/// that day of the week, and for a leap second, which no clock of ours can name.
std::optional<ClientTime> parse_imf_fixdate(std::string_view text) noexcept;

/// How a moment that a client named lies to ours.
enum class ClientTimeIs : std::uint8_t { fine, too_old, ahead };
/// Too old: before `age_max` ago. Ahead: further from the future than limits::key_time_skew.
ClientTimeIs judge(ClientTime said, Millis age_max, ClientTime now) noexcept;

}  // namespace idem
