#include "cli/caller_flags.hpp"

#include "cli/commands.hpp"

namespace idem::cli {
namespace {

using Checked = std::expected<void, std::string>;
using Kind = gateway::ScopeSource::Kind;

Checked take_time(std::string_view flag, const std::string& text, Millis cap, Millis& out) {
  const auto parsed = parse_duration(text);
  if (!parsed) return std::unexpected(std::string(flag) + ": " + parsed.error());
  if (*parsed > cap) {
    return std::unexpected(std::string(flag) + " " + text + " must be at most " +
                           std::to_string(cap / Millis(1000)) + "s");
  }
  out = *parsed;
  return {};
}

Checked take_header_trust(const CallerFlags& flags, gateway::ScopeSource& scope) {
  const bool listed = !flags.trusted_proxies.empty();
  if (scope.kind != Kind::header) {
    if (!listed) return {};
    return std::unexpected(
        "--trusted-proxy needs --scope header:NAME: nothing else is believed "
        "for where it comes from");
  }
  if (listed && flags.trust_scope_header) {
    return std::unexpected(
        "--trusted-proxy and --trust-scope-header contradict each other: the "
        "one believes some peers, the other all; give one of them");
  }
  if (!listed && !flags.trust_scope_header) {
    return std::unexpected("--scope " + flags.scope +
                           ": any client could claim any tenant by that header; say by "
                           "--trusted-proxy CIDR whose header counts, or add "
                           "--trust-scope-header if only a trusted proxy can reach this listener");
  }
  if (flags.trusted_proxies.size() > limits::trusted_proxies_max) {
    return std::unexpected("--trusted-proxy: at most " +
                           std::to_string(limits::trusted_proxies_max));
  }
  for (const auto& text : flags.trusted_proxies) {
    auto network = http::Network::parse(text);
    if (!network) return std::unexpected("--trusted-proxy " + network.error());
    scope.trusted_proxies.push_back(*network);
  }
  return {};
}

Checked take_jwt(const CallerFlags& flags, gateway::GatewaySettings& settings) {
  auto& scope = settings.scope;
  if (scope.kind != Kind::jwt) {
    if (flags.jwt_algorithm.empty() && flags.jwt_key_file.empty() && flags.jwt_jwks_file.empty() &&
        flags.jwt_issuer.empty() && flags.jwt_audience.empty()) {
      return {};
    }
    return std::unexpected("--jwt-... belongs to --scope jwt:CLAIM");
  }
  if (flags.jwt_key_file.empty() == flags.jwt_jwks_file.empty()) {
    return std::unexpected("--scope " + flags.scope +
                           " needs the issuer's keys: one of --jwt-key-file and --jwt-jwks-file");
  }
  if (flags.jwt_algorithm.empty()) {
    return std::unexpected("--scope " + flags.scope +
                           " needs --jwt-algorithm: what a token says of itself is not believed");
  }
  if (flags.jwt_issuer.empty()) {
    return std::unexpected("--scope " + flags.scope + " needs --jwt-issuer: whose tokens count");
  }
  gateway::JwtRules rules{.algorithm = flags.jwt_algorithm,
                          .key_file = flags.jwt_key_file,
                          .jwks_file = flags.jwt_jwks_file,
                          .issuer = flags.jwt_issuer,
                          .audience = flags.jwt_audience,
                          .claim = scope.name,
                          .leeway = Millis(0)};
  const auto taken =
      take_time("--jwt-leeway", flags.jwt_leeway, limits::jwt_leeway_cap, rules.leeway);
  if (!taken) return taken;
  auto verifier = gateway::JwtVerifier::load(rules);
  if (!verifier) return std::unexpected("--scope " + flags.scope + ": " + verifier.error());
  settings.jwt = std::move(*verifier);
  // Part of the identity that the store keeps: under another issuer no record would be found.
  scope.text += " of " + flags.jwt_issuer;
  return {};
}

Checked take_authorize(const CallerFlags& flags, gateway::GatewaySettings& settings) {
  if (flags.authorize_url.empty()) {
    if (flags.authorize_ca.empty()) return {};
    return std::unexpected("--authorize-ca needs --authorize-url");
  }
  auto authorize = gateway::parse_authorize_url(flags.authorize_url);
  if (!authorize) return std::unexpected("--authorize-url: " + authorize.error());
  const std::tuple<std::string_view, const std::string&, Millis, Millis&> all[] = {
      {"--authorize-timeout", flags.authorize_timeout, limits::authorize_timeout_cap,
       authorize->timeout},
      {"--authorize-cache", flags.authorize_cache, limits::authorize_cache_cap, authorize->cache}};
  for (const auto& [flag, text, cap, out] : all) {
    if (const auto taken = take_time(flag, text, cap, out); !taken) return taken;
  }
  if (authorize->timeout <= Millis(0)) {
    return std::unexpected("--authorize-timeout must be above 0");
  }
  if (authorize->address.tls) {
    auto context = http::TlsContext::for_client({flags.authorize_ca, true});
    if (!context) return std::unexpected("--authorize-ca " + context.error());
    authorize->tls = std::move(*context);
  } else if (!flags.authorize_ca.empty()) {
    return std::unexpected("--authorize-ca needs an https:// --authorize-url");
  }
  settings.authorize = std::move(*authorize);
  return {};
}

}  // namespace

void declare_caller(CLI::App& command, CallerFlags& f) {
  const auto add = [&](const std::string& name, auto& value, const char* text) {
    std::string variable = "IDEM_";
    for (const char c : name.substr(2)) {
      variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return command.add_option(name, value, text)->envname(variable);
  };
  add("--scope", f.scope,
      "who a key belongs to: header:NAME, authorization, jwt:CLAIM, mtls or static:NAME");
  command.add_flag("--trust-scope-header", f.trust_scope_header,
                   "only trusted proxies can reach the listener, so the scope header is believed");
  add("--trusted-proxy", f.trusted_proxies,
      "CIDR of a proxy whose scope header is believed, repeatable; taken away from all others")
      ->allow_extra_args(false);
  add("--jwt-algorithm", f.jwt_algorithm, "RS256, PS256, ES256, EdDSA or HS256; no other is taken");
  add("--jwt-key-file", f.jwt_key_file, "PEM file: the issuer's public key; for HS256 the secret");
  add("--jwt-jwks-file", f.jwt_jwks_file, "file with the issuer's JWK Set; a token's kid chooses");
  add("--jwt-issuer", f.jwt_issuer, "what a token's iss must be");
  add("--jwt-audience", f.jwt_audience,
      "what a token's aud must hold; without it a token with an aud is refused");
  add("--jwt-leeway", f.jwt_leeway, "between the issuer's clock and ours; at most 60s")
      ->capture_default_str();
  add("--authorize-url", f.authorize_url,
      "http(s)://HOST[:PORT]/PATH that is asked before anything is reserved or replayed: 2xx goes "
      "on, 401 and 403 are the answer, all else is 503");
  add("--authorize-ca", f.authorize_ca,
      "PEM file: who signs its certificate; by default the system's");
  add("--authorize-timeout", f.authorize_timeout, "for its answer; at most 60s")
      ->capture_default_str();
  add("--authorize-cache", f.authorize_cache,
      "how long its yes to one request of one caller is believed; at most 60s")
      ->capture_default_str();
}

std::expected<void, std::string> take_caller(const CallerFlags& flags,
                                             gateway::GatewaySettings& settings) {
  if (flags.scope.empty()) {
    return std::unexpected(
        "--scope is missing: say who a key belongs to. There is no default, because a shared one "
        "would give one tenant's answers to another. Write --scope header:X-Tenant-Id "
        "--trusted-proxy CIDR, --scope authorization, --scope jwt:CLAIM, --scope mtls or --scope "
        "static:NAME");
  }
  auto scope = gateway::parse_scope_source(flags.scope);
  if (!scope) return std::unexpected("--scope: " + scope.error());
  settings.scope = std::move(*scope);
  if (const auto taken = take_header_trust(flags, settings.scope); !taken) return taken;
  if (const auto taken = take_jwt(flags, settings); !taken) return taken;
  return take_authorize(flags, settings);
}

}  // namespace idem::cli
