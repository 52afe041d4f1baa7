#pragma once

#include "gateway/bounded_cache.hpp"
#include "gateway/settings.hpp"
#include "http/server_stream.hpp"

#include <idem/fingerprint.hpp>

#include <expected>

namespace idem::gateway {

/// Finds the scope of a request (protocol.md §9). One loop's thread.
class ScopeReader {
 public:
  explicit ScopeReader(const Secret& secret) : secret_(secret) {}

  /// The error is a sentence for the client: the source is absent, empty, too long, has more than
  /// one line or is not trusted; then nothing may be stored or run. Valid until the next call and
  /// for as long as the request's head.
  /// `peer_identity`: ServerStream::peer_identity().
  std::expected<std::string_view, std::string> read(const http::RequestHead& head,
                                                    const std::optional<std::string>& peer_identity,
                                                    const GatewaySettings& settings);

  /// Memory for a scope, to be given back, so that a request need not allocate its own.
  std::string take_room();
  void give_back(std::string room) {
    if (rooms_.size() < limits::scope_rooms_max) rooms_.push_back(std::move(room));
  }

 private:
  /// Kept in made_.
  std::string_view keep(std::string scope) { return made_ = std::move(scope); }
  std::expected<std::string, std::string> of_token(const http::RequestHead& head,
                                                   const GatewaySettings& settings);

  const Secret& secret_;
  std::string made_;
  std::vector<std::string> rooms_;
  /// Tokens that this verifier found good.
  std::shared_ptr<const JwtVerifier> verified_by_;
  BoundedCache<std::string> verified_{limits::jwt_cache_entries_max};
};

/// The scope whose share of common resources this request uses; empty where all have one scope.
std::string bounded_scope(const ScopeSource& source, const std::string& scope);

/// §9: a scope field counts only from a trusted proxy, where there are any.
bool is_scope_trusted(const http::ServerStream& client, const ScopeSource& source) noexcept;

/// §9: removes a scope field that a client could have sent itself, for the gateway and for the
/// upstream behind it.
void drop_untrusted_scope(http::ServerStream& client, const ScopeSource& source);

}  // namespace idem::gateway
