#pragma once

#include "gateway/route.hpp"
#include "http/upstream_pool.hpp"

#include <idem/key.hpp>
#include <idem/limits.hpp>
#include <idem/record.hpp>

#include <string>
#include <vector>

namespace idem::gateway {

/// Where a request's scope comes from (protocol.md §9).
struct ScopeSource {
  enum class Kind : std::uint8_t { header, authorization, mtls, fixed };
  Kind kind = Kind::fixed;
  std::string name;  ///< The header's name, or the fixed scope itself.
  std::string text;  ///< As configured, e.g. "header:X-Tenant-Id"; recorded in the store.
};

/// What becomes of the key's field on its way to the upstream.
struct KeyForward {
  enum class Kind : std::uint8_t { keep, strip, rename };
  Kind kind = Kind::keep;
  std::string name{};  ///< The new one. What a client sends under it is dropped.
};

/// What a gateway was told. Never changed: a reload makes another one, and each request keeps the
/// one that it began with.
struct GatewaySettings {
  http::UpstreamAddress upstream;
  std::shared_ptr<const http::TlsContext> upstream_tls;  ///< For an https upstream.
  ScopeSource scope;
  KeyOptions key;
  std::vector<std::string> key_headers{"Idempotency-Key"};
  KeyForward key_forward;
  Millis connect_timeout = limits::connect_timeout_default;
  Millis upstream_keep_alive_idle = limits::upstream_keep_alive_idle;
  /// How long a tunnel may lie without a byte either way.
  Millis tunnel_idle = limits::tunnel_idle_default;
  RouteTable routes;
  std::string owner;  ///< This node's name, for people.
  /// Our name in Via, unlike that of any other gateway, so that a loop is seen (RFC 9110 §7.6.3).
  std::string via_name;
};
using SharedSettings = std::shared_ptr<const GatewaySettings>;

/// What the lease must exceed the dispatch timeout by: limits::lease_margin, or a quarter of a
/// lease too short for that.
Millis lease_margin(Millis lease) noexcept;

/// False for names that mean something else to an upstream, or frame the message.
bool may_carry_key(std::string_view field_name) noexcept;

/// "header:NAME", "authorization", "mtls" or "static:NAME"; otherwise a sentence that says what to
/// write.
std::expected<ScopeSource, std::string> parse_scope_source(const std::string& text);

}  // namespace idem::gateway
