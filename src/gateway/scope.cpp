#include "gateway/scope.hpp"

namespace idem::gateway {
namespace {

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
  return std::unexpected("\"" + text +
                         "\" is no scope source; write header:NAME, authorization or static:NAME");
}

std::optional<std::string> scope_of(const http::RequestHead& head, const ScopeSource& source,
                                    const Secret& secret) {
  switch (source.kind) {
    case ScopeSource::Kind::fixed:
      return source.name;
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
      if (!found || found->empty()) return std::nullopt;
      return credential_digest(secret, *found);
    }
  }
  return std::nullopt;
}

}  // namespace idem::gateway
