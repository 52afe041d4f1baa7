#pragma once

#include "http/server_stream.hpp"
#include "http/upstream_call.hpp"

namespace idem::gateway {

/// True for an answer whose body is not meant to end: server-sent events and server push by
/// multipart. False where no body follows.
bool is_stream(const http::ResponseHead& head, const http::BodyReader& body) noexcept;

/// After begin_stream(): sends what is left of the upstream's body on to the client, piece by
/// piece, each of which may take the upstream's timeout. Where it breaks off, the client's
/// connection is aborted, so that nobody takes the cut for the end. A stream is cut at drain.
Task<void> stream_body(http::ServerStream& client, http::UpstreamCall& call,
                       Millis upstream_timeout);

}  // namespace idem::gateway
