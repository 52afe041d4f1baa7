#pragma once

#include "core/evidence/event_source.hpp"
#include "core/json/scalars.hpp"
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
  /// Peers of the TCP connection whose header counts: from all others it is removed, also before it
  /// reaches the upstream. Empty: all peers.
  std::vector<http::Network> trusted_proxies{};
};

/// How the key's field is forwarded to the upstream.
struct KeyForward {
  enum class Kind : std::uint8_t { keep, strip, rename };
  Kind kind = Kind::keep;
  std::string name{};  ///< The new one. A client's field of that name is dropped.
};

/// The service that is asked first whether a keyed request may go on (protocol.md §6).
struct AuthorizeSettings {
  http::UpstreamAddress address;
  std::string target;                             ///< Path and query.
  std::shared_ptr<const http::TlsContext> tls{};  ///< For an https address.
  Millis timeout = limits::authorize_timeout_default;
  /// How long a positive answer is kept; 0: not at all. At most limits::authorize_cache_cap.
  Millis cache{0};
};

/// Within what a key is unique (protocol.md §2).
enum class KeyScope : std::uint8_t {
  operation,  ///< The scope and the operation.
  tenant,     ///< The scope: the same key on another operation is a misuse.
};
std::string_view name_of(KeyScope scope) noexcept;

/// By which values records are found, besides the ids of traces and the upstream's references.
struct SearchSettings {
  struct Place {
    std::string text;  ///< The JSON Pointer as configured.
    JsonPointer pointer;
  };
  std::vector<Place> requests;
  std::vector<Place> answers;
};

/// The settings of a gateway. Never changed: a reload makes new ones, and each request keeps those
/// with which it began.
struct GatewaySettings {
  http::UpstreamAddress upstream;
  std::shared_ptr<const http::TlsContext> upstream_tls;  ///< For an https upstream.
  ScopeSource scope;
  /// For a scope of jwt:CLAIM. A reload makes another one, with the keys that the files hold then.
  std::shared_ptr<const JwtVerifier> jwt;
  std::optional<AuthorizeSettings> authorize;
  KeyOptions key;
  /// For new records: the rule for the time in their key, and whether a Repeatability-First-Sent
  /// that is too old counts.
  KeyTimeRule key_time = KeyTimeRule::ignored;
  bool honours_first_sent = false;
  std::vector<std::string> key_headers{"Idempotency-Key"};
  KeyForward key_forward;
  Millis connect_timeout = limits::connect_timeout_default;
  Millis upstream_keep_alive_idle = limits::upstream_keep_alive_idle;
  /// How long a tunnel may be idle in both directions.
  Millis tunnel_idle = limits::tunnel_idle_default;
  KeyScope key_scope = KeyScope::operation;
  RouteTable routes;
  /// The quota of each scope; none: no limit.
  std::optional<Quota> quota;
  /// Providers that may send events about attempts, by name.
  std::map<std::string, std::shared_ptr<const EventSource>, std::less<>> event_sources;
  std::optional<SearchSettings> search{};  ///< None: nothing is indexed.
  /// The store's generation when it adopted these routes: it refuses requests of an older one.
  std::uint64_t generation = 0;
  /// The secrets for sealing, newest first; empty: no credentials are kept.
  std::vector<std::array<std::uint8_t, 32>> async_secrets;
  std::string owner;  ///< This node's name, for people.
  /// Our name in Via, unlike that of any other gateway, so that a loop is seen (RFC 9110 §7.6.3).
  std::string via_name;
};
using SharedSettings = std::shared_ptr<const GatewaySettings>;

/// How much the lease must be longer than the dispatch timeout: limits::lease_margin, or a quarter
/// of a lease too short for that.
Millis lease_margin(Millis lease) noexcept;

/// False for fields that mean something else to an upstream, or frame the message: they may carry
/// neither a key nor a scope.
bool may_carry_key(std::string_view field_name) noexcept;

/// "header:NAME", "authorization", "jwt:CLAIM", "mtls" or "static:NAME"; otherwise a sentence that
/// says what to write.
std::expected<ScopeSource, std::string> parse_scope_source(const std::string& text);

/// "http(s)://HOST[:PORT]/PATH[?QUERY]"; otherwise a sentence that says what to write.
std::expected<AuthorizeSettings, std::string> parse_authorize_url(const std::string& url);

}  // namespace idem::gateway
