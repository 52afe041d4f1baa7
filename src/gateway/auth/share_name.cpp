#include "gateway/auth/share_name.hpp"

#include "http/network.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace idem::gateway {
namespace {

// First bytes that no scope begins with.
constexpr char by_hash = '\1';
constexpr char by_address = '\2';

}  // namespace

ShareName::ShareName(const http::ServerStream& client, const ScopeSource& source) noexcept {
  switch (source.kind) {
    case ScopeSource::Kind::fixed:
      return;
    case ScopeSource::Kind::mtls:
      if (client.peer_identity()) name_scope(*client.peer_identity());
      break;
    case ScopeSource::Kind::header:
      for (const auto& field : client.head().fields) {
        if (http::same_name(field.name, source.name)) name_scope(field.value);
      }
      break;
    case ScopeSource::Kind::authorization:
    case ScopeSource::Kind::jwt:
      for (const auto& field : client.head().fields) {
        if (field.known != http::FieldName::authorization) continue;
        const std::size_t hash = std::hash<std::string_view>()(field.value);
        made_[0] = by_hash;
        std::memcpy(made_.data() + 1, &hash, sizeof hash);
        name_scope({made_.data(), 1 + sizeof hash});
      }
      break;
  }
  if (is_scope_ || !client.peer_address()) return;
  // A proxy is not one client.
  if (http::any_contains(source.trusted_proxies, *client.peer_address())) return;
  // As Admission counts: an IPv6 client has a /64.
  const auto& peer = *client.peer_address();
  made_[0] = by_address;
  std::copy_n(peer.bytes.begin(), peer.v4 ? 4 : 8, made_.begin() + 1);
  text_ = {made_.data(), peer.v4 ? 5U : 9U};
}

void ShareName::name_scope(std::string_view text) noexcept {
  if (text.empty()) return;
  text_ = text.substr(0, limits::scope_bytes_max);
  is_scope_ = true;
}

}  // namespace idem::gateway
