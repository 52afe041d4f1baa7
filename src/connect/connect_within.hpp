#pragma once

#include "connect/connect_race.hpp"

#include <expected>

namespace idem {

/// A connection, and the address that accepted it. The socket does not block.
struct ConnectedPeer {
  OwnedDescriptor socket;
  Peer peer;
};

/// Connects to the first of them that accepts (see ConnectRace). Blocks until the deadline; with
/// `is_abandoned` it ends within a quarter of a second after that is set.
std::expected<ConnectedPeer, ConnectTrouble> connect_within(
    const Peers& peers, MonotonicTime deadline, const std::atomic<bool>* is_abandoned = nullptr);

}  // namespace idem
