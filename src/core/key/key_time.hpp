#pragma once

#include <idem/record.hpp>

#include <optional>
#include <string_view>

/// When a client made a key, or first sent a request, by its own clock (protocol.md §8).
namespace idem {

/// A moment by a client's clock, which may be wrong.
using ClientTime = std::chrono::sys_time<Millis>;

/// The rule for the time in a key.
enum class KeyTimeRule : std::uint8_t {
  ignored,
  checked,   ///< Where the key carries one, it must be neither too old nor ahead.
  required,  ///< And each key must carry one.
};

/// When a key was made: a UUID of version 7 (RFC 9562 §5.7) in its usual form, or a ULID, in upper
/// or lower case. None for all others. 26 digits are regarded as a number: of the ULIDs of this
/// century, one in a hundred million has digits only.
std::optional<ClientTime> time_of_key(std::string_view key) noexcept;

/// IMF-fixdate (RFC 9110 §5.6.7), the form of Repeatability-First-Sent: "Sun, 06 Nov 1994 08:49:37
/// GMT". None for other forms, for a date that the calendar does not have, for a wrong day of the
/// week, and for a leap second, which ClientTime cannot express.
std::optional<ClientTime> parse_imf_fixdate(std::string_view text) noexcept;

/// A client's moment compared with Idem's clock.
enum class ClientTimeIs : std::uint8_t { fine, too_old, ahead };
/// Too old: more than `age_max` before `now`. Ahead: more than limits::key_time_skew after it.
ClientTimeIs judge(ClientTime time, Millis age_max, ClientTime now) noexcept;

}  // namespace idem
