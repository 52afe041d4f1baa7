#pragma once

#include "gateway/settings.hpp"
#include "http/server_stream.hpp"

#include <idem/fingerprint.hpp>

#include <optional>

namespace idem::gateway {

/// Who the request belongs to. None: the source field is absent, empty, too long or has more than
/// one line, or no verified client certificate names anybody (§9); then nothing may be stored or
/// run. `secret` is Identity::scope_secret, which no rotation changes.
std::optional<std::string> scope_of(const http::ServerStream& client, const ScopeSource& source,
                                    const Secret& secret);

}  // namespace idem::gateway
