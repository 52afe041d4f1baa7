#pragma once

#include "gateway/settings.hpp"
#include "http/server_stream.hpp"

#include <string>

namespace idem::gateway {

/// Who sent it, as far as the gateway knows without asking: the certificate's holder, the last
/// address that a trusted proxy names, or the peer. Empty: not known.
std::string client_name(const http::ServerStream& client, const ScopeSource& source);

}  // namespace idem::gateway
