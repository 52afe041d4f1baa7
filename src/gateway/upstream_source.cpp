#include "gateway/upstream_source.hpp"

#include "http/alike.hpp"
#include "http/connection_login.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace idem::gateway {
namespace {

/// A proxy puts requests of several clients on one connection: with such a field it is one,
/// whatever the settings say.
bool came_by_proxy(const http::ServerStream& client, const ScopeSource& scope) {
  static constexpr std::array<std::string_view, 5> marks{"Via", "Forwarded", "X-Forwarded-For",
                                                         "X-Forwarded-Host", "X-Real-IP"};
  const auto& peer = client.peer_address();
  if (!peer || http::any_contains(scope.trusted_proxies, *peer)) return true;
  return std::ranges::any_of(client.head().fields, [](const http::FieldView& field) {
    return std::ranges::any_of(marks, [&](auto mark) { return http::alike(field.name, mark); });
  });
}

}  // namespace

UpstreamSource::UpstreamSource(http::UpstreamPool& pool, http::ServerStream& client,
                               const GatewaySettings& settings, const Route& route)
    : pool_(pool) {
  if (!route.pin_logins || came_by_proxy(client, settings.scope)) return;
  const bool is_own = client.own_upstream().has_been;
  if (is_own || http::carries_connection_login(client.head().fields)) owner_ = &client;
}

bool UpstreamSource::is_own() const noexcept {
  return owner_ != nullptr && owner_->own_upstream().has_been;
}

std::unique_ptr<http::Wire> UpstreamSource::take_idle() {
  if (!is_own()) return pool_.take_idle();
  auto wire = std::exchange(owner_->own_upstream().wire, nullptr);
  if (wire && !wire->quiet_and_open()) wire.reset();
  return wire;
}

Task<std::expected<std::unique_ptr<http::Wire>, http::ConnectFailure>> UpstreamSource::connect() {
  if (!is_own()) {
    auto connecting = pool_.connect();
    auto connected = co_await connecting;
    co_return connected;
  }
  owner_->close_after();
  co_return std::unexpected(http::ConnectFailure{
      http::ConnectFailure::Reason::closed,
      "The upstream has closed the connection that was logged in for this one. Connect anew and "
      "log in again."});
}

bool UpstreamSource::give_back(http::UpstreamCall& call) {
  auto wire = call.take_reusable(owner_ != nullptr);
  const bool is_kept = wire != nullptr;
  if (owner_ != nullptr) {
    if (is_kept) wire->no_deadline();
    if (is_kept) wire->unpin();
    // Where the upstream keeps no connection, each request logs in by itself.
    const bool has_been = owner_->own_upstream().has_been || is_kept;
    owner_->own_upstream() = {.has_been = has_been, .wire = std::move(wire)};
  } else if (is_kept) {
    pool_.give_back(std::move(wire));
  }
  return is_kept;
}

}  // namespace idem::gateway
