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

/// What a key is unique in (protocol.md §2).
enum class KeyScope : std::uint8_t {
  operation,  ///< The scope and the operation.
  tenant,     ///< The scope: the same key on another operation is a misuse.
};
std::string_view name_of(KeyScope scope) noexcept;

/// What a gateway was told. Never changed: a reload makes another one, and each request keeps the
/// one that it began with.
struct GatewaySettings {
  http::UpstreamAddress upstream;
  std::shared_ptr<const http::TlsContext> upstream_tls;  ///< For an https upstream.
  ScopeSource scope;
  KeyOptions key;
  std::vector<std::string> key_headers{"Idempotency-Key"};
  Millis connect_timeout = limits::connect_timeout_default;
  Millis upstream_keep_alive_idle = limits::upstream_keep_alive_idle;
  /// How long a tunnel may lie without a byte either way.
  Millis tunnel_idle = limits::tunnel_idle_default;
  KeyScope key_scope = KeyScope::operation;
  RouteTable routes;
  /// Of the store, when it adopted these routes: a request that began with them is refused by it
  /// once it has adopted others.
  std::uint64_t generation = 0;
  std::string owner;  ///< This node's name, for people.
  /// Our name in Via, unlike that of any other gateway, so that a loop is seen (RFC 9110 §7.6.3).
  std::string via_name;
};
using SharedSettings = std::shared_ptr<const GatewaySettings>;

/// What the lease must exceed the dispatch timeout by: limits::lease_margin, or a quarter of a
/// lease too short for that.
Millis lease_margin(Millis lease) noexcept;

/// "header:NAME", "authorization", "mtls" or "static:NAME"; otherwise a sentence that says what to
/// write.
std::expected<ScopeSource, std::string> parse_scope_source(const std::string& text);

}  // namespace idem::gateway
