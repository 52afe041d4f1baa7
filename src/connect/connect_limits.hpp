#pragma once

#include <chrono>
#include <cstddef>

/// The bounds of connecting to a name, each with its reason; beside limits.hpp.
namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// A silent address of a name gets company after so long: the default of RFC 8305 §8, above the
// round trip to almost every server, and so short that a timeout of 1 s tries four.
inline constexpr auto connect_attempt_delay = 250ms;
// Addresses of one name that a connection tries: each costs a socket, and at the delay above a
// timeout of 2 s does not reach the tenth.
inline constexpr std::size_t connect_addresses_max = 16;
// A name's answer is kept so long where its first address did not accept, and with it what did: a
// fraction of the shortest TTL of a name in common use, so that a name that moves is followed.
inline constexpr auto name_answer_kept_max = 10s;
// How often a thread that waits for a look-up or a connection sees whether it is still wanted.
inline constexpr auto connect_look_interval = 250ms;

}  // namespace idem::inline v0_1::limits
