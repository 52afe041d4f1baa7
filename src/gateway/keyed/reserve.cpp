#include "gateway/keyed/reserve.hpp"

#include "coding/decoded.hpp"
#include "core/fingerprint/body_form.hpp"
#include "core/json/rpc.hpp"
#include "core/naming/shadow_names.hpp"
#include "gateway/keyed/sealing.hpp"
#include "gateway/method_override.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>

namespace idem::gateway {
namespace {

/// Every line of the fields that count, as name and value, in the order of the request.
std::vector<std::string_view> chosen_headers(const http::RequestHead& head,
                                             const FingerprintRule& rule) {
  std::vector<std::string_view> chosen;
  for (const auto& field : head.fields) {
    const auto names_it = [&](const std::string& name) {
      return http::same_name(field.name, name);
    };
    if (counts_always(field.name) || std::ranges::any_of(rule.headers, names_it)) {
      chosen.insert(chosen.end(), {field.name, field.value});
    }
  }
  return chosen;
}

/// The operation's part of a record's name: empty where a key is unique in its scope.
std::vector<std::string> naming_parts(const http::RequestHead& head,
                                      const GatewaySettings& settings, const Route& route,
                                      Enforce kind) {
  std::vector<std::string> parts{std::string()};
  if (settings.key_scope != KeyScope::tenant) {
    const auto path = http::path_of(head.origin_form);
    parts = settings.routes.former_operations(route, head.method, path);
    parts.insert(parts.begin(), route.operation(head.method, path));
  }
  if (kind == Enforce::shadow) std::ranges::transform(parts, parts.begin(), shadow_naming_part);
  return parts;
}

/// `counted` are the parts of this request.
std::expected<Reserve, http::Refusal> reserve_of(
    const Fingerprinted& counted, const http::RequestHead& head, const RequestParts& request,
    const Identity& identity, const GatewaySettings& settings, const Route& route) {
  const auto refusal = refused_by_override(counted.asked(), head, settings, route);
  if (refusal) return std::unexpected(*refusal);
  const RequestDigest digest(counted.parts());
  const auto parts = naming_parts(head, settings, route, route.enforce);
  Reserve reserve;
  reserve.scope = request.scope;
  reserve.operation =
      route.in_shadow() ? shadow_operation(request.operation) : std::string(request.operation);
  reserve.fingerprints = digest.under(identity.secret);
  reserve.id = record_id(identity.secret, request.scope, parts.front(), request.key);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    reserve.also.push_back({record_id(identity.secret, request.scope, parts[i], request.key)});
  }
  for (const Secret& older : identity.older) {
    for (const auto& part : parts) {
      reserve.also.push_back(
          {record_id(older, request.scope, part, request.key), digest.under(older)});
    }
  }
  reserve.token = random_token();
  reserve.owner = settings.owner;
  reserve.lease = route.lease;
  reserve.retention = route.retention;
  reserve.tombstone = route.tombstone;
  reserve.generation = settings.generation;
  if (request.new_key_rejection != nullptr) reserve.quota = no_room;
  if (route.in_shadow()) {
    reserve.dispatched = false;
    return reserve;
  }
  reserve.lease_policy = route.lease_policy;
  reserve.dispatched = !route.separate_dispatch_mark;
  if (!reserve.quota) reserve.quota = settings.quota;
  reserve.provider = route.reconcile;
  if (route.reconciles_by_key) {
    reserve.sealed_key = seal_key(request.key, request.scope, identity, settings);
  }
  return reserve;
}

}  // namespace

Fingerprinted::Fingerprinted(const http::RequestHead& head, std::string_view body,
                             const Route& route)
    : Fingerprinted(head, body, route, route.request_body_bytes_max) {}

Fingerprinted::Fingerprinted(const http::RequestHead& head, std::string_view body,
                             const Route& route, std::size_t decoded_max)
    : chosen_(chosen_headers(head, route.fingerprint)),
      parts_{.method = head.method,
             .target = head.origin_form,
             .content_type = {},
             .chosen_headers = chosen_,
             .body = body,
             .rule = &route.fingerprint} {
  for (const auto& field : head.fields) {
    if (field.known == http::FieldName::content_type) parts_.content_type = field.value;
    if (http::same_name(field.name, "Content-Encoding")) codings_.push_back(field.value);
  }
  parts_.content_encoding = codings_;
  if (!route.decode.empty() && !codings_.empty()) {
    decode(route, std::min(decoded_max, route.request_body_bytes_max));
  }
  // An encoded call is not read where it is sent, so that its answer could not be compared with it.
  if (route.jsonrpc && counted_codings(parts_).empty() && parts_.as_sent == nullptr &&
      rpc_call_id(body)) {
    without_id_ = route.fingerprint;
    without_id_.exclude.emplace_back("/id");
    parts_.rule = &without_id_;
  }
  asked_ = override_of(head);
  if (counted_codings(parts_).empty()) asked_.add_body(parts_.content_type, parts_.body);
  if (!asked_.asked()) return;
  method_ = asked_.counted(head.method);
  parts_.method = method_;
}

void Fingerprinted::decode(const Route& route, std::size_t decoded_max) {
  // Of two codings, this names none.
  const auto coding = coding_of(counted_codings(parts_));
  if (!coding || std::ranges::find(route.decode, *coding) == route.decode.end()) return;
  auto content = decoded(*coding, parts_.body, decoded_max);
  if (!content) {
    is_cut_ = content.error() == NotDecoded::too_large;
    return;
  }
  decoded_ = std::move(*content);
  as_sent_ = {parts_.body, codings_};
  parts_.body = decoded_;
  parts_.content_encoding = {};
  parts_.as_sent = &as_sent_;
}

std::expected<Reserve, http::Refusal> make_reserve(const http::RequestHead& head,
                                                   const RequestParts& request,
                                                   const Identity& identity,
                                                   const GatewaySettings& settings,
                                                   const Route& route) {
  const Fingerprinted counted(head, request.body, route);
  return reserve_of(counted, head, request, identity, settings, route);
}

std::optional<std::expected<Reserve, http::Refusal>> make_reserve_within(
    std::size_t bytes_max, const http::RequestHead& head, const RequestParts& request,
    const Identity& identity, const GatewaySettings& settings, const Route& route) {
  if (request.body.size() > bytes_max) return std::nullopt;
  const Fingerprinted counted(head, request.body, route, bytes_max);
  // Beyond the route's own limit the bytes count, and no thread changes that.
  if (counted.is_cut() && bytes_max < route.request_body_bytes_max) return std::nullopt;
  return reserve_of(counted, head, request, identity, settings, route);
}

std::vector<RecordId> possible_ids(const http::RequestHead& head, const Identity& identity,
                                   const GatewaySettings& settings, const Route& route,
                                   const std::string& scope, const std::string& key, Enforce kind) {
  const auto parts = naming_parts(head, settings, route, kind);
  std::vector<RecordId> ids;
  const auto add = [&](const Secret& secret) {
    for (const auto& part : parts) ids.push_back(record_id(secret, scope, part, key));
  };
  add(identity.secret);
  for (const Secret& older : identity.older) add(older);
  return ids;
}

}  // namespace idem::gateway
