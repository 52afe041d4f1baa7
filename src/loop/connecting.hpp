#pragma once

#include "connect/connect_within.hpp"
#include "loop/loop.hpp"

/// Connecting to a server by its name, on a loop. Loop's thread only. A coroutine that ends before
/// its connection is there closes all that were tried.
namespace idem {

/// The addresses of `host`. A name is asked for on the resolver's thread; no caller waits longer
/// than until the deadline, although a look-up that has begun cannot be cancelled.
Task<std::expected<Peers, ConnectTrouble>> look_up(Loop& loop, std::string host, std::string port,
                                                   MonotonicTime deadline);

/// Connects `socket`, which is closed, to the first of them that accepts, as ConnectRace does; with
/// one address there is no race. Gives the one that accepted.
Task<std::expected<Peer, ConnectTrouble>> connect_to_first(Loop& loop, const Peers& peers,
                                                           MonotonicTime deadline, Socket& socket);

/// Which of several accepts first: for a client library that opens its sockets itself, and takes
/// one address. Its connection is closed, and nothing was written to it.
Task<std::expected<Peer, ConnectTrouble>> first_that_accepts(Loop& loop, const Peers& peers,
                                                             MonotonicTime deadline);

}  // namespace idem
