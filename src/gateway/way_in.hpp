#pragma once

#include "core/exchange/error_form.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"

#include <optional>

/// Where a request goes by its head alone, before anybody asks whose it is (protocol.md §6, §8).
/// Used by requests and by their explanations alike.
namespace idem::gateway {

/// The paths that the gateway answers itself.
enum class OwnPath : std::uint8_t {
  none,
  event,      ///< For a provider.
  operation,  ///< The status resource of an operation.
  page,       ///< All others.
};
OwnPath own_path(const http::RequestHead& head);

/// The form of errors before the route is known: the defaults' form, or the one that all other
/// routes have.
ErrorForm unrouted_form(const RouteTable& routes);

/// True for a request with a field that may carry a key.
bool carries_key(const http::RequestHead& head, const GatewaySettings& settings);

struct WayIn {
  enum class Kind : std::uint8_t {
    loops,    ///< It came back to this gateway: refused.
    refused,  ///< Keyed or not, as `refusal` says.
    passes,   ///< To the upstream, without a record.
    keyed,
    shadow,  ///< Passes; without `enforce: shadow` it would be keyed.
  };
  Kind kind = Kind::passes;
  const Route* route = nullptr;  ///< One of the settings; null for `loops`.
  http::Refusal refusal{};
};
/// For a path that is not ours.
WayIn way_in(const http::RequestHead& head, const GatewaySettings& settings);

/// Why the head alone has a request refused on a route that enforces; none: it does not.
std::optional<http::Refusal> refused_by_head(const http::RequestHead& head,
                                             const GatewaySettings& settings, const Route& route);

/// The refusals.
Problem loop_problem();
inline constexpr http::Refusal strips_refusal{
    400, "Connection names a field that must be kept (RFC 9110 7.6.1 abuse)"};
/// RFC 9110 §9.1: methods are case-sensitive. But some servers are not, and to them `post` is POST:
/// it would run without a key, and `patch` would be another request than PATCH under one key.
inline constexpr http::Refusal miscased_method_refusal{
    400, "the method differs from a known one only in case: write it in capitals (RFC 9110 9.1)"};
/// P28: the exchange behind a 101 has no answer that could be stored.
inline constexpr http::Refusal keyed_upgrade_refusal{
    501, "an Upgrade of a keyed request (RFC 9110 7.8)"};

}  // namespace idem::gateway
