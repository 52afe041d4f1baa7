#pragma once

#include "http/server_stream.hpp"

namespace idem::gateway {

/// After a 101: carries bytes both ways until both sides have ended, beginning with those that came
/// with the heads. One side's end is passed on and the other way goes on. Holds the two wires'
/// buffers and nothing else. Cut when no byte has moved for `idle`, when a side breaks, and at
/// drain; the client then sees a reset, not an end.
Task<void> run_tunnel(http::ServerStream& client, http::Wire& upstream, Millis idle);

}  // namespace idem::gateway
