#pragma once

#include <chrono>
#include <cstddef>

/// @file
/// How soon a process notices that a disk or a server has stopped working under it, each bound with
/// its reason.
namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// A store that lets one call wait for so long counts as one that does not answer. A busy disk that
// works takes tenths of a second, and half of the ten seconds for which a client waits at most
// (settle_wait_max) are left to answer it.
inline constexpr auto store_silence_max = 5s;
// A call with more bytes of an answer or a request says nothing by its time: a wire of 2 Mbit/s
// carries so much in that time.
inline constexpr std::size_t store_quick_bytes_max = 1024UL * 1024;
// Between two tries of the release of an attempt whose grant came after its asker had gone. Nothing
// waits for it but a retry of the same key.
inline constexpr auto orphan_release_interval = 2s;
// Such attempts, of 200 bytes each: as many as a gateway has clients. Leases end the others.
inline constexpr std::size_t orphans_max = 16'384;

// How long a request of the admin API waits until the files of the tokens are read: a thousand
// times what it takes. After it, the tokens that were read last count: a revocation cannot
// reach a disk that hangs.
inline constexpr auto token_read_max = 1s;

// How long a start may take before the log says that it waits.
inline constexpr auto start_quiet_max = 5s;
// A process that is to end and waits for a store that does not answer gives up after so long: the
// settling writes that it still has would need the store, and systemd waits 90 s before it kills.
inline constexpr auto hang_end_max = 5s;
// The end of a process whose store answers: a large store closes within seconds, and a question to
// a provider has as much time.
inline constexpr auto end_time_max = 60s;

// How often a connection to a server that stays open asks for the settings that a start looks at:
// the syncs of its log may be switched off meanwhile. It costs three questions for a
// connection, and answers of that time may be lost with the server.
inline constexpr auto server_check_interval = 10s;

// A transaction that is open for so long is named by a look at the server, and so is a lock on a
// table: those of the store take milliseconds.
inline constexpr auto long_transaction_min = 3s;
// Of each kind. An operator who has ended these asks again and gets the next ones.
inline constexpr int hindrances_named_max = 5;

}  // namespace idem::inline v0_1::limits
