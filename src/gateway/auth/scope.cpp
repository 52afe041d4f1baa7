#include "gateway/auth/scope.hpp"

#include "http/alike.hpp"

#include <algorithm>

namespace idem::gateway {
namespace {

using ReadScope = std::expected<std::string, std::string>;

/// §9 knows static credentials only: one that changes between a request and its retry would hide
/// the record, and the retry would run again. So Basic, and Bearer tokens that are not JWTs. The
/// scheme's spelling does not count (RFC 9110 §11.1).
std::optional<std::string> static_credential(std::string_view value) {
  const auto space = value.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto scheme = value.substr(0, space);
  auto secret = value.substr(space);
  while (!secret.empty() && secret.front() == ' ') secret.remove_prefix(1);
  if (secret.empty()) return std::nullopt;
  if (http::same_name(scheme, "Basic")) return "basic " + std::string(secret);
  if (!http::same_name(scheme, "Bearer") || looks_like_jwt(secret)) return std::nullopt;
  return "bearer " + std::string(secret);
}

std::optional<std::string_view> only_authorization(const http::RequestHead& head) {
  std::optional<std::string_view> found;
  for (const auto& field : head.fields) {
    if (field.known != http::FieldName::authorization) continue;
    if (found) return std::nullopt;
    found = field.value;
  }
  return found;
}

/// RFC 6750 §2.1. Not from the query or a form: both end up in logs.
std::optional<std::string_view> bearer_token(const http::RequestHead& head) {
  const auto line = only_authorization(head);
  const auto space = line ? line->find(' ') : std::string_view::npos;
  if (space == std::string_view::npos) return std::nullopt;
  if (!http::same_name(line->substr(0, space), "Bearer")) return std::nullopt;
  const auto token = line->find_first_not_of(' ', space);
  if (token == std::string_view::npos) return std::nullopt;
  return line->substr(token);
}

/// A line that a server may confuse with this one counts as a second: the upstream might read that
/// other tenant. So does a list, which an intermediary may make of two lines (RFC 9110 §5.3).
std::optional<std::string_view> only_line(const http::RequestHead& head, std::string_view name) {
  std::optional<std::string_view> found;
  for (const auto& field : head.fields) {
    if (!http::alike(field.name, name)) continue;
    if (found || !http::same_name(field.name, name)) return std::nullopt;
    found = field.value;
  }
  if (!found || found->empty() || found->size() > limits::scope_bytes_max) return std::nullopt;
  return found->contains(',') ? std::nullopt : found;
}

bool is_credential(std::string_view name) {
  return http::same_name(name, "Authorization") || http::same_name(name, "Proxy-Authorization") ||
         http::same_name(name, "Cookie");
}

}  // namespace

Millis lease_margin(Millis lease) noexcept {
  return std::min<Millis>(limits::lease_margin, lease / 4);
}

std::string_view name_of(KeyScope scope) noexcept {
  return scope == KeyScope::tenant ? "tenant" : "operation";
}

std::expected<ScopeSource, std::string> parse_scope_source(const std::string& text) {
  static constexpr std::string_view header = "header:";
  static constexpr std::string_view fixed = "static:";
  static constexpr std::string_view jwt = "jwt:";
  if (text.starts_with(header) && http::is_token(text.substr(header.size()))) {
    if (is_credential(text.substr(header.size()))) {
      return std::unexpected("\"" + text +
                             "\": a scope is stored and shown to operators, and that field is a "
                             "secret; write authorization or jwt:CLAIM");
    }
    if (!may_carry_key(text.substr(header.size()))) {
      return std::unexpected("\"" + text +
                             "\": that field has a meaning of its own; write one that names the "
                             "caller, such as header:X-Tenant-Id");
    }
    return ScopeSource{ScopeSource::Kind::header, text.substr(header.size()), text};
  }
  if (text.starts_with(fixed) && text.size() > fixed.size() &&
      text.size() <= fixed.size() + limits::scope_bytes_max) {
    return ScopeSource{ScopeSource::Kind::fixed, text.substr(fixed.size()), text};
  }
  if (text.starts_with(jwt) && text.size() > jwt.size() &&
      text.size() <= jwt.size() + limits::scope_bytes_max) {
    return ScopeSource{ScopeSource::Kind::jwt, text.substr(jwt.size()), text};
  }
  if (text == "authorization") {
    return ScopeSource{ScopeSource::Kind::authorization, "Authorization", text};
  }
  if (text == "mtls") return ScopeSource{ScopeSource::Kind::mtls, {}, text};
  return std::unexpected("\"" + text +
                         "\" is no scope source; write header:NAME, authorization, jwt:CLAIM, mtls "
                         "or static:NAME");
}

std::expected<std::string_view, std::string> ScopeReader::read(
    const http::RequestHead& head, const std::optional<std::string>& peer_identity,
    const GatewaySettings& settings) {
  const ScopeSource& source = settings.scope;
  using Scope = std::expected<std::string_view, std::string>;
  const auto or_error = [&](std::optional<std::string_view> scope) -> Scope {
    if (scope) return *scope;
    return std::unexpected("Exactly one non-empty value is needed from " + source.text + ".");
  };
  switch (source.kind) {
    case ScopeSource::Kind::fixed:
      return source.name;
    case ScopeSource::Kind::mtls:
      return or_error(peer_identity);
    case ScopeSource::Kind::header:
      return or_error(only_line(head, source.name));
    case ScopeSource::Kind::jwt: {
      auto holder = of_token(head, settings);
      if (!holder) return std::unexpected(std::move(holder.error()));
      return keep(std::move(*holder));
    }
    case ScopeSource::Kind::authorization: {
      const auto line = only_authorization(head);
      const auto credential = line ? static_credential(*line) : std::nullopt;
      if (!credential) return or_error(std::nullopt);
      return keep(credential_digest(secret_, *credential));
    }
  }
  return or_error(std::nullopt);
}

std::string ScopeReader::take_room() {
  if (rooms_.empty()) return {};
  std::string room = std::move(rooms_.back());
  rooms_.pop_back();
  return room;
}

ReadScope ScopeReader::of_token(const http::RequestHead& head, const GatewaySettings& settings) {
  const auto token = bearer_token(head);
  if (!token || !settings.jwt) {
    return std::unexpected("Exactly one Authorization field with a Bearer token is needed.");
  }
  if (verified_by_ != settings.jwt) {  // Its keys may be others.
    verified_.clear();
    verified_by_ = settings.jwt;
  }
  const std::string name = credential_digest(secret_, *token);
  const MonotonicTime now = MonotonicClock::now();
  if (auto known = verified_.find(name, now)) return std::move(*known);
  const auto today = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  auto holder = settings.jwt->verify(*token, today);
  if (!holder) return std::unexpected(std::string(describe(holder.error())));
  const auto left = std::min<Millis>(holder->expires_at - today, limits::jwt_cache_time);
  verified_.put(name, holder->scope, now + left);
  return std::move(holder->scope);
}

std::string bounded_scope(const ScopeSource& source, const std::string& scope) {
  return source.kind == ScopeSource::Kind::fixed ? std::string() : scope;
}

bool is_scope_trusted(const http::ServerStream& client, const ScopeSource& source) noexcept {
  if (source.kind != ScopeSource::Kind::header || source.trusted_proxies.empty()) return true;
  const auto& peer = client.peer_address();
  return peer && http::any_contains(source.trusted_proxies, *peer);
}

void drop_untrusted_scope(http::ServerStream& client, const ScopeSource& source) {
  if (!is_scope_trusted(client, source)) client.drop_field(source.name);
}

}  // namespace idem::gateway
