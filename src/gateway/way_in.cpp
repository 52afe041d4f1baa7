#include "gateway/way_in.hpp"

#include "gateway/background/events.hpp"
#include "gateway/background/operations.hpp"
#include "gateway/forward.hpp"
#include "gateway/method_override.hpp"
#include "gateway/passthrough/upgrade.hpp"
#include "http/alike.hpp"

#include <algorithm>
#include <array>

namespace idem::gateway {
namespace {

/// How a method uses keys (§8).
enum class KeyRule : std::uint8_t { ignored, honoured, required };

KeyRule key_rule(std::string_view method, const Route& route) {
  if (method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE") {
    return KeyRule::ignored;
  }
  return route.needs_key(method) ? KeyRule::required : KeyRule::honoured;
}

/// Where the request asks for another method, that one's rule counts if it is the stricter one.
KeyRule key_rule(const http::RequestHead& head, const MethodOverride& asked,
                 const GatewaySettings& settings, const Route& route) {
  const KeyRule own = key_rule(head.method, route);
  if (!asked.asked() || !asked.is_clear()) return own;
  const Route& other = settings.routes.find(asked.method(), http::path_of(head.origin_form));
  return std::max(own, key_rule(asked.method(), other));
}

/// The known method that `method` is but for its case; empty: none, or `method` itself is known.
std::string_view miscased(std::string_view method) {
  // RFC 9110 §9.3, RFC 5789, and QUERY of the IETF's HTTP working group.
  static constexpr std::array<std::string_view, 10> known{
      "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"};
  const auto found = std::ranges::find_if(
      known, [method](std::string_view one) { return http::same_name(one, method); });
  return found == known.end() || *found == method ? std::string_view() : *found;
}

bool is_ours(std::string_view path) {
  return path.starts_with("/.idem/") || path == "/.idem" || path == "/.well-known/idempotency";
}

/// What a request may not remove: on a shadow route it may remove what only the rules for keys
/// read.
enum class Relied : std::uint8_t { by_all, by_keys_too };

/// True for a field that Connection may not remove between us and the upstream (RFC 9110 §7.6.1):
/// it decides about the record, its fingerprint or the caller, and the upstream would see another
/// request than we did (P14). Names that a server may confuse with such a one count, too.
bool is_relied_on(std::string_view option, const GatewaySettings& settings, const Route& route,
                  Relied relied) {
  static constexpr std::array<std::string_view, 9> always{
      "Authorization", "Cookie",          "Content-Type",     "Content-Encoding", "Via",
      "Forwarded",     "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"};
  const auto is = [option](std::string_view name) { return http::alike(option, name); };
  const auto& scope = settings.scope;
  if ((scope.kind == ScopeSource::Kind::header && is(scope.name)) ||
      std::ranges::any_of(always, is)) {
    return true;
  }
  return relied == Relied::by_keys_too &&
         (is_like_key_field(option, settings) || counts_always(option) ||
          MethodOverride::is_field(option) || std::ranges::any_of(route.fingerprint.headers, is));
}

bool strips_what_we_rely_on(const http::RequestHead& head, const GatewaySettings& settings,
                            const Route& route, Relied relied) {
  bool strips = false;
  for (const auto& field : head.fields) {
    if (field.known != http::FieldName::connection) continue;
    http::each_list_member(field.value, [&](std::string_view option) {
      if (http::same_name(option, "close") || http::same_name(option, "keep-alive")) return;
      strips = strips || is_relied_on(option, settings, route, relied);
    });
  }
  return strips;
}

}  // namespace

OwnPath own_path(const http::RequestHead& head) {
  const auto path = http::path_of(head.origin_form);
  if (path.starts_with(events_path)) return OwnPath::event;
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (reads && is_operation_path(path)) return OwnPath::operation;
  return is_ours(path) ? OwnPath::page : OwnPath::none;
}

ErrorForm unrouted_form(const RouteTable& routes) {
  const auto& all = routes.all();
  const auto is_stripe = [](const Route& route) {
    return error_form_of(route.answers.preset) == ErrorForm::stripe;
  };
  const bool all_named = all.size() > 1 && std::all_of(all.begin(), all.end() - 1, is_stripe);
  return is_stripe(all.back()) || all_named ? ErrorForm::stripe : ErrorForm::problem;
}

bool carries_key(const http::RequestHead& head, const GatewaySettings& settings) {
  return std::ranges::any_of(head.fields,
                             [&](const auto& field) { return is_key_field(field.name, settings); });
}

WayIn way_in(const http::RequestHead& head, const GatewaySettings& settings) {
  if (passed_before(head, settings.via_name)) return {WayIn::Kind::loops};
  // Of a miscased method the route that the upstream would find counts.
  const std::string_view meant = miscased(head.method);
  const Route& route = settings.routes.find(meant.empty() ? std::string_view(head.method) : meant,
                                            http::path_of(head.origin_form));
  const Relied relied = route.in_shadow() ? Relied::by_all : Relied::by_keys_too;
  if (strips_what_we_rely_on(head, settings, route, relied)) {
    return {WayIn::Kind::refused, &route, strips_refusal};
  }
  if (!meant.empty()) {
    if (route.in_shadow()) return {WayIn::Kind::shadow, &route};
    return {WayIn::Kind::refused, &route, miscased_method_refusal};
  }
  const MethodOverride asked = override_of(head);
  if (const auto refusal = refused_by_override(asked, head, settings, route)) {
    if (route.in_shadow()) return {WayIn::Kind::shadow, &route};
    return {WayIn::Kind::refused, &route, *refusal};
  }
  const KeyRule rule = key_rule(head, asked, settings, route);
  const bool has_key = rule != KeyRule::ignored && carries_key(head, settings);
  if (!has_key && rule != KeyRule::required) return {WayIn::Kind::passes, &route};
  return {route.in_shadow() ? WayIn::Kind::shadow : WayIn::Kind::keyed, &route};
}

std::optional<http::Refusal> refused_by_head(const http::RequestHead& head,
                                             const GatewaySettings& settings, const Route& route) {
  if (strips_what_we_rely_on(head, settings, route, Relied::by_keys_too)) return strips_refusal;
  if (!miscased(head.method).empty()) return miscased_method_refusal;
  const auto refusal = refused_by_override(override_of(head), head, settings, route);
  if (refusal) return refusal;
  if (!offered_protocols(head).empty()) return keyed_upgrade_refusal;
  return std::nullopt;
}

Problem loop_problem() {
  return {.code = ProblemCode::loop_detected,
          .detail = "Via names this gateway: the request came back to it."};
}

}  // namespace idem::gateway
