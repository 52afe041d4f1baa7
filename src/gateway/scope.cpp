#include "gateway/scope.hpp"

#include <algorithm>

namespace idem::gateway {
namespace {

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
  const bool is_jwt = secret.starts_with("eyJ") && std::ranges::count(secret, '.') >= 2;
  if (!http::same_name(scheme, "Bearer") || is_jwt) return std::nullopt;
  return "bearer " + std::string(secret);
}

std::optional<std::string_view> only_line(const http::RequestHead& head, std::string_view name) {
  std::optional<std::string_view> found;
  for (const auto& field : head.fields) {
    if (!http::same_name(field.name, name)) continue;
    if (found) return std::nullopt;
    found = field.value;
  }
  if (found && (found->empty() || found->size() > limits::scope_bytes_max)) return std::nullopt;
  return found;
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
  if (text.starts_with(header) && http::is_token(text.substr(header.size()))) {
    return ScopeSource{ScopeSource::Kind::header, text.substr(header.size()), text};
  }
  if (text.starts_with(fixed) && text.size() > fixed.size() &&
      text.size() <= fixed.size() + limits::scope_bytes_max) {
    return ScopeSource{ScopeSource::Kind::fixed, text.substr(fixed.size()), text};
  }
  if (text == "authorization") {
    return ScopeSource{ScopeSource::Kind::authorization, "Authorization", text};
  }
  if (text == "mtls") return ScopeSource{ScopeSource::Kind::mtls, {}, text};
  return std::unexpected(
      "\"" + text + "\" is no scope source; write header:NAME, authorization, mtls or static:NAME");
}

std::optional<std::string> scope_of(const http::ServerStream& client, const ScopeSource& source,
                                    const Secret& secret) {
  const http::RequestHead& head = client.head();
  switch (source.kind) {
    case ScopeSource::Kind::fixed:
      return source.name;
    case ScopeSource::Kind::mtls:
      return client.peer_identity();
    case ScopeSource::Kind::header: {
      const auto value = only_line(head, source.name);
      if (!value) return std::nullopt;
      return std::string(*value);
    }
    case ScopeSource::Kind::authorization: {
      std::optional<std::string_view> found;
      for (const auto& field : head.fields) {
        if (field.known != http::FieldName::authorization) continue;
        if (found) return std::nullopt;
        found = field.value;
      }
      const auto credential = found ? static_credential(*found) : std::nullopt;
      if (!credential) return std::nullopt;
      return credential_digest(secret, *credential);
    }
  }
  return std::nullopt;
}

}  // namespace idem::gateway
