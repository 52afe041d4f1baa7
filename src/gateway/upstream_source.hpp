#pragma once

#include "gateway/settings.hpp"
#include "http/server_stream.hpp"
#include "http/upstream_call.hpp"
#include "http/upstream_pool.hpp"

#include <expected>
#include <memory>

namespace idem::gateway {

/// Where one request gets its connection to the upstream: from the loop's pool, or, on a route that
/// pins logins, from its client's connection, once a request there has logged a connection in
/// (connection_login.hpp). That one is its client's alone and ends with the client's. When it is
/// gone, the client's next request is refused and its connection closes: over another one the
/// request would run as another user. Loop's thread only.
class UpstreamSource {
 public:
  /// For a request without a client.
  explicit UpstreamSource(http::UpstreamPool& pool) noexcept : pool_(pool) {}
  UpstreamSource(http::UpstreamPool& pool, http::ServerStream& client,
                 const GatewaySettings& settings, const Route& route);

  /// As in UpstreamPool.
  std::unique_ptr<http::Wire> take_idle();
  Task<std::expected<std::unique_ptr<http::Wire>, http::ConnectFailure>> connect();
  /// After a call. False: its connection is no more.
  bool give_back(http::UpstreamCall& call);

 private:
  bool is_own() const noexcept;

  http::UpstreamPool& pool_;
  http::ServerStream* owner_ = nullptr;  ///< None: no connection is kept for a client.
};

}  // namespace idem::gateway
