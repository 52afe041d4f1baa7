#include "gateway/passthrough/upgrade.hpp"

namespace idem::gateway {
namespace {

bool begins_with(std::string_view text, std::string_view prefix) noexcept {
  return text.size() >= prefix.size() && http::same_name(text.substr(0, prefix.size()), prefix);
}

// protocol-name ["/" protocol-version]
bool is_protocol(std::string_view text) noexcept {
  const auto slash = text.find('/');
  if (!http::is_token(text.substr(0, slash))) return false;
  return slash == std::string_view::npos || http::is_token(text.substr(slash + 1));
}

bool carries_requests(std::string_view protocol) noexcept {
  return begins_with(protocol, "h2") || begins_with(protocol, "h3") ||
         begins_with(protocol, "http") || begins_with(protocol, "tls");
}

bool has_member(std::string_view list, std::string_view wanted) {
  bool found = false;
  http::each_list_member(
      list, [&](std::string_view member) { found |= http::same_name(member, wanted); });
  return found;
}

}  // namespace

std::string offered_protocols(const http::RequestHead& head) {
  std::string offered;
  if (!head.upgrade) return offered;
  for (const auto& field : head.fields) {
    if (field.known != http::FieldName::upgrade) continue;
    http::each_list_member(field.value, [&](std::string_view protocol) {
      if (!is_protocol(protocol) || carries_requests(protocol)) return;
      if (!offered.empty()) offered += ", ";
      offered += protocol;
    });
  }
  return offered;
}

bool ends_with_head(const http::RequestHead& head) noexcept {
  return head.framing == http::Framing::none ||
         (head.framing == http::Framing::content_length && head.content_length == 0);
}

std::optional<std::string> switched_to(const http::ResponseHead& head, std::string_view offered) {
  std::string protocols;
  bool names_upgrade = false;
  bool all_offered = true;
  for (const auto& field : head.fields) {
    if (field.known == http::FieldName::connection) {
      names_upgrade |= has_member(field.value, "upgrade");
    }
    if (field.known != http::FieldName::upgrade) continue;
    http::each_list_member(field.value, [&](std::string_view protocol) {
      all_offered &= has_member(offered, protocol);
      if (!protocols.empty()) protocols += ", ";
      protocols += protocol;
    });
  }
  if (!names_upgrade || !all_offered || protocols.empty()) return std::nullopt;
  return protocols;
}

}  // namespace idem::gateway
