#pragma once

#include "core/evidence/event_source.hpp"
#include "core/key/key_time.hpp"
#include "gateway/auth/jwt/jwt.hpp"
#include "gateway/route.hpp"
#include "http/network.hpp"
#include "http/upstream_pool.hpp"

#include <idem/key.hpp>
#include <idem/limits.hpp>
#include <idem/record.hpp>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace idem::gateway {

/// Where a request's scope comes from (protocol.md §9).
struct ScopeSource {
  enum class Kind : std::uint8_t { header, authorization, jwt, mtls, fixed };
  Kind kind = Kind::fixed;
  std::string name;  ///< The header's name, the claim's, or the fixed scope itself.
  std::string text;  ///< As configured, e.g. "header:X-Tenant-Id"; recorded in the store.
  /// Whose header counts, by the other end of the TCP connection: from all others it is taken away,
  /// also before it reaches the upstream. Empty: everybody's.
  std::vector<http::Network> trusted_proxies{};
};

/// What becomes of the key's field on its way to the upstream.
struct KeyForward {
  enum class Kind : std::uint8_t { keep, strip, rename };
  Kind kind = Kind::keep;
  std::string name{};  ///< The new one. What a client sends under it is dropped.
};

/// Who is asked whether a keyed request may go on, before anything else is done with it (protocol
/// §6).
struct AuthorizeSettings {
  http::UpstreamAddress address;
  std::string target;                             ///< Path and query.
  std::shared_ptr<const http::TlsContext> tls{};  ///< For an https address.
  Millis timeout = limits::authorize_timeout_default;
  /// How long a yes is believed; 0: never. At most limits::authorize_cache_cap.
  Millis cache{0};
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
  /// For a scope of jwt:CLAIM. A reload makes another one, with the keys that the files hold then.
  std::shared_ptr<const JwtVerifier> jwt;
  std::optional<AuthorizeSettings> authorize;
  KeyOptions key;
  /// Of new records: what is asked of the time in their key, and whether a too old
  /// Repeatability-First-Sent beside it counts.
  KeyTimeRule key_time = KeyTimeRule::ignored;
  bool honours_first_sent = false;
  std::vector<std::string> key_headers{"Idempotency-Key"};
  KeyForward key_forward;
  Millis connect_timeout = limits::connect_timeout_default;
  Millis upstream_keep_alive_idle = limits::upstream_keep_alive_idle;
  /// How long a tunnel may lie without a byte either way.
  Millis tunnel_idle = limits::tunnel_idle_default;
  KeyScope key_scope = KeyScope::operation;
  RouteTable routes;
  /// What each scope may have; none: as much as it likes.
  std::optional<Quota> quota;
  /// Who may tell what became of an attempt, by name.
  std::map<std::string, std::shared_ptr<const EventSource>, std::less<>> event_sources;
  /// Of the store, when it adopted these routes: a request that began with them is refused by it
  /// once it has adopted others.
  std::uint64_t generation = 0;
  /// Under which what is stored sealed is sealed, newest first; empty: no credentials are kept.
  std::vector<std::array<std::uint8_t, 32>> async_secrets;
  std::string owner;  ///< This node's name, for people.
  /// Our name in Via, unlike that of any other gateway, so that a loop is seen (RFC 9110 §7.6.3).
  std::string via_name;
};
using SharedSettings = std::shared_ptr<const GatewaySettings>;

/// What the lease must exceed the dispatch timeout by: limits::lease_margin, or a quarter of a
/// lease too short for that.
Millis lease_margin(Millis lease) noexcept;

/// False for names that mean something else to an upstream, or frame the message: neither a key nor
/// a scope may stand there.
bool may_carry_key(std::string_view field_name) noexcept;

/// "header:NAME", "authorization", "jwt:CLAIM", "mtls" or "static:NAME"; otherwise a sentence that
/// says what to write.
std::expected<ScopeSource, std::string> parse_scope_source(const std::string& text);

/// "http(s)://HOST[:PORT]/PATH[?QUERY]"; otherwise a sentence that says what to write.
std::expected<AuthorizeSettings, std::string> parse_authorize_url(const std::string& url);

}  // namespace idem::gateway
