#include "gateway/auth/client_name.hpp"

#include "http/network.hpp"

#include <idem/limits.hpp>

namespace idem::gateway {

std::string client_name(const http::ServerStream& client, const ScopeSource& source) {
  if (client.peer_identity()) return *client.peer_identity();
  const auto& peer = client.peer_address();
  if (!peer) return {};
  if (http::any_contains(source.trusted_proxies, *peer)) {
    std::string_view last;
    for (const auto& field : client.head().fields) {
      if (!http::same_name(field.name, "X-Forwarded-For")) continue;
      http::each_list_member(field.value, [&](std::string_view one) { last = one; });
    }
    if (!last.empty()) return std::string(last.substr(0, limits::scope_bytes_max));
  }
  return http::text_of(*peer);
}

}  // namespace idem::gateway
