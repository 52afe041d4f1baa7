#include "cli/settings/caller_flags.hpp"

#include "cli/settings/parse.hpp"
#include "cli/settings/secret_file.hpp"
#include "config/words.hpp"

namespace idem::cli {
namespace {

using config::shown;
using ScopeKind = gateway::ScopeSource::Kind;

void parse_time(const Given& given, Millis cap, Millis& out, Complaints& complaints) {
  if (!parse_given_duration(given, out, complaints)) return;
  if (out > cap) {
    complaints.add(given.place,
                   shown(given.text) + " is out of range; write at most " + to_text(cap));
  }
}

void parse_header_trust(const CallerFlags& flags, gateway::ScopeSource& scope,
                        Complaints& complaints) {
  const auto& proxies = flags.trusted_proxies;
  const bool listed = !proxies.items.empty();
  const bool all = is_true(flags.trust_scope_header);
  if (scope.kind != ScopeKind::header) {
    if (!listed) return;
    return complaints.add(
        proxies.place,
        "trusted proxies (--trusted-proxy) need a scope header:NAME: only that depends "
        "on the peer's address");
  }
  if (listed && all) {
    return complaints.add(
        flags.trust_scope_header.place,
        "trust_header (--trust-scope-header) and trusted_proxies "
        "(--trusted-proxy) contradict each other: one trusts all peers, the other "
        "some; give one of them");
  }
  if (!listed && !all) {
    return complaints.add(
        flags.scope.place,
        shown(flags.scope.text) +
            ": any client could claim any tenant by that header; write trusted_proxies "
            "(--trusted-proxy), or trust_header: true (--trust-scope-header) if only a "
            "trusted proxy can reach this listener");
  }
  parse_networks(proxies, scope.trusted_proxies, complaints);
}

bool has_token_settings(const CallerFlags& flags) {
  return !flags.jwt_algorithm.text.empty() || !flags.jwt_key_file.text.empty() ||
         !flags.jwt_jwks_file.text.empty() || !flags.jwt_issuer.text.empty() ||
         !flags.jwt_audience.text.empty();
}

void parse_jwt(const CallerFlags& flags, gateway::GatewaySettings& settings,
               Complaints& complaints) {
  auto& scope = settings.scope;
  const auto& place = flags.scope.place;
  Millis leeway{0};
  parse_time(flags.jwt_leeway, limits::jwt_leeway_cap, leeway, complaints);
  if (scope.kind != ScopeKind::jwt) {
    if (!has_token_settings(flags)) return;
    return complaints.add(place,
                          "settings of tokens (--jwt-..., scope.jwt) need a scope jwt:CLAIM");
  }
  if (flags.jwt_key_file.text.empty() == flags.jwt_jwks_file.text.empty()) {
    return complaints.add(place,
                          "a scope jwt:CLAIM needs the issuer's keys: one of --jwt-key-file "
                          "and --jwt-jwks-file (scope.jwt.key_file, jwks_file)");
  }
  if (flags.jwt_algorithm.text.empty()) {
    return complaints.add(place,
                          "a scope jwt:CLAIM needs --jwt-algorithm (scope.jwt.algorithm): "
                          "the algorithm that a token names itself is not trusted");
  }
  if (flags.jwt_issuer.text.empty()) {
    return complaints.add(place,
                          "a scope jwt:CLAIM needs --jwt-issuer (scope.jwt.issuer): the "
                          "issuer of accepted tokens");
  }
  gateway::JwtRules rules{.algorithm = flags.jwt_algorithm.text,
                          .key_file = flags.jwt_key_file.text,
                          .jwks_file = flags.jwt_jwks_file.text,
                          .issuer = flags.jwt_issuer.text,
                          .audience = flags.jwt_audience.text,
                          .claim = scope.name,
                          .leeway = leeway};
  if (rules.algorithm == "HS256") {  // With it one can sign tokens of any tenant.
    const auto good = check_secret_file(rules.key_file.empty() ? rules.jwks_file : rules.key_file);
    if (!good) return complaints.add(place, good.error());
  }
  auto verifier = gateway::JwtVerifier::load(rules);
  if (!verifier) return complaints.add(place, verifier.error());
  settings.jwt = std::move(*verifier);
  // The issuer is part of the store's identity: under another one no record would be found.
  scope.text += " of " + flags.jwt_issuer.text;
}

void parse_authorize(const CallerFlags& flags, gateway::GatewaySettings& settings,
                     Complaints& complaints) {
  const auto& url = flags.authorize_url;
  const auto& ca = flags.authorize_ca;
  gateway::AuthorizeSettings times;
  parse_time(flags.authorize_timeout, limits::authorize_timeout_cap, times.timeout, complaints);
  parse_time(flags.authorize_cache, limits::authorize_cache_cap, times.cache, complaints);
  if (times.timeout <= Millis(0)) {
    complaints.add(flags.authorize_timeout.place, "an authoriser needs a timeout above 0");
  }
  if (url.text.empty()) {
    if (ca.text.empty()) return;
    return complaints.add(ca.place, "an authoriser's CA needs --authorize-url (authorize.url)");
  }
  auto authorize = gateway::parse_authorize_url(url.text);
  if (!authorize) {
    return complaints.add(url.place, config::without_quoted_password(authorize.error()));
  }
  authorize->timeout = times.timeout;
  authorize->cache = times.cache;
  if (authorize->address.tls) {
    auto context = http::TlsContext::for_client({ca.text, true});
    if (!context) return complaints.add(ca.place, context.error());
    authorize->tls = std::move(*context);
  } else if (!ca.text.empty()) {
    complaints.add(ca.place, "an authoriser's CA needs an https:// --authorize-url");
  }
  settings.authorize = std::move(*authorize);
}

}  // namespace

std::vector<config::Setting> settings_of(CallerFlags& f) {
  using config::duration;
  using config::one_of;
  using config::path;
  using config::text;
  using config::texts;
  using config::truth;
  constexpr auto live = config::Change::live;
  constexpr auto gateways = config::Role::gateway;
  return {
      {"scope.from", "--scope", text, &f.scope,
       "the owner of a key: header:NAME, authorization, jwt:CLAIM, mtls or static:NAME"},
      {"scope.trust_header", "--trust-scope-header", truth, &f.trust_scope_header,
       "trust the scope header of all peers: only trusted proxies can reach the listener", live},
      {"scope.trusted_proxies", "--trusted-proxy", texts, &f.trusted_proxies,
       "networks, such as 10.0.0.0/8, whose scope header is trusted; it is removed from requests "
       "of others",
       live},
      {"scope.jwt.algorithm", "--jwt-algorithm", one_of("RS256|PS256|ES256|EdDSA|HS256"),
       &f.jwt_algorithm, "the algorithm of tokens' signatures; others are refused", live},
      {"scope.jwt.key_file", "--jwt-key-file", path, &f.jwt_key_file,
       "PEM file: the issuer's public key; for HS256 the secret", live},
      {"scope.jwt.jwks_file", "--jwt-jwks-file", path, &f.jwt_jwks_file,
       "file with the issuer's JWK Set; a token's kid chooses", live},
      {"scope.jwt.issuer", "--jwt-issuer", text, &f.jwt_issuer, "the iss that a token must have"},
      {"scope.jwt.audience", "--jwt-audience", text, &f.jwt_audience,
       "a value that a token's aud must contain; if not set, tokens with an aud are refused", live},
      {"scope.jwt.leeway", "--jwt-leeway", duration, &f.jwt_leeway,
       "tolerated difference between the issuer's clock and the gateway's; at most 60s", live},
      {"authorize.url", "--authorize-url", text, &f.authorize_url,
       "http(s)://HOST[:PORT]/PATH that is asked before a reserve or replay: 2xx lets the request "
       "through, the client gets a 401 or 403, anything else becomes 503",
       live, gateways},
      {"authorize.ca", "--authorize-ca", path, &f.authorize_ca,
       "PEM file: the CA of its certificate; by default the system's", live, gateways},
      {"authorize.timeout", "--authorize-timeout", duration, &f.authorize_timeout,
       "time for its answer; at most 60s", live, gateways},
      {"authorize.cache", "--authorize-cache", duration, &f.authorize_cache,
       "how long a 2xx holds for the same caller and request; at most 60s", live, gateways},
  };
}

void parse_caller(const CallerFlags& flags, gateway::GatewaySettings& settings,
                  Complaints& complaints) {
  const auto& given = flags.scope;
  if (given.text.empty()) {
    if (given.given) return;  // config::check() complains about an empty text.
    return complaints.add(
        given.place,
        "there is no scope: a key needs an owner. There is no default, because a shared scope "
        "would give one tenant's answers to another. Write --scope header:X-Tenant-Id "
        "--trusted-proxy CIDR, --scope authorization, --scope jwt:CLAIM, --scope mtls or --scope "
        "static:NAME, or in the file scope: {from: \"header:X-Tenant-Id\", trusted_proxies: "
        "[10.0.0.0/8]}");
  }
  auto scope = gateway::parse_scope_source(given.text);
  if (!scope) return complaints.add(given.place, scope.error());
  settings.scope = std::move(*scope);
  parse_header_trust(flags, settings.scope, complaints);
  parse_jwt(flags, settings, complaints);
  parse_authorize(flags, settings, complaints);
}

}  // namespace idem::cli
