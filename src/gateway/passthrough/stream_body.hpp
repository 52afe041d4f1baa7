#pragma once

#include "gateway/passthrough/onlooker.hpp"
#include "http/server_stream.hpp"
#include "http/upstream_call.hpp"

#include <cstdint>

namespace idem::gateway {

/// True for an answer whose body is not meant to end: server-sent events and server push by
/// multipart. False where no body follows.
bool is_stream(const http::ResponseHead& head, const http::BodyReader& body) noexcept;

/// After begin_stream(): sends the rest of the upstream's body to the client, piece by piece, each
/// of which may take the upstream's timeout. Where it breaks off, the client's connection is
/// aborted, so that the client sees a cut and no end. A stream is cut at drain (`stopped`).
/// `client_left`: the upstream goes on with its answer.
enum class StreamEnd : std::uint8_t { whole, client_left, broken, stopped };
Task<StreamEnd> stream_body(http::ServerStream& client, http::UpstreamCall& call,
                            Millis upstream_timeout, Onlooker* onlooker = nullptr);

}  // namespace idem::gateway
