#include "gateway/keyed/async_request.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/seal.hpp"
#include "core/exchange/preferences.hpp"
#include "gateway/forward.hpp"
#include "gateway/keyed/reserve.hpp"
#include "gateway/keyed/sealing.hpp"
#include "http/alike.hpp"
#include "http/head_fields.hpp"

#include <algorithm>
#include <array>
#include <deque>

namespace idem::gateway {
namespace {

using http::FieldName;
using http::same_name;

bool keeps(const Route& route, std::string_view name) {
  return std::ranges::any_of(route.async_keep_fields,
                             [&](const std::string& kept) { return same_name(name, kept); });
}

}  // namespace

bool is_async(const http::RequestHead& head, const Route& route) {
  if (route.mode == Mode::async) return true;
  if (!route.respond_async) return false;
  return std::ranges::any_of(head.fields, [](const http::FieldView& field) {
    return same_name(field.name, "Prefer") && prefers_async(field.value);
  });
}

bool is_credential(std::string_view name, const GatewaySettings& settings) {
  static constexpr std::array<std::string_view, 15> kinds{
      "authoriz",   "authent", "cookie", "token",  "secret",    "api-key",   "apikey",     "passw",
      "credential", "session", "jwt",    "bearer", "assertion", "signature", "client-cert"};
  const auto& scope = settings.scope;
  if (scope.kind == ScopeSource::Kind::header && http::alike(name, scope.name)) return true;
  std::string text = lower_case(name);
  std::ranges::replace(text, '_', '-');
  const auto is_kind = [&](std::string_view kind) { return text.contains(kind); };
  if (std::ranges::any_of(kinds, is_kind)) return true;
  text = "-" + text + "-";
  static constexpr std::array<std::string_view, 3> words{"-auth-", "-otp-", "-pin-"};
  const auto is_word = [&](std::string_view word) { return text.contains(word); };
  // X-Auth and X-Access-Key are credentials, X-Author and X-Key-Count are not.
  return std::ranges::any_of(words, is_word) || text.ends_with("-key-");
}

std::string request_to_store(const http::RequestHead& head, const RequestParts& request,
                             const RecordId& id, const Identity& identity,
                             const GatewaySettings& settings, const Route& route,
                             const std::optional<tracing::Outgoing>& trace) {
  StoredRequest stored{.minor_version = head.minor_version,
                       .method = head.method,
                       .target = head.origin_form,
                       .host = head.host,
                       .fields = {},
                       .sealed_for = id,
                       .sealed = {},
                       .body = request.body};
  RequestSecrets secrets{.key = request.key, .fields = {}};
  std::deque<std::string> preferences;  // Stay where they are.
  const std::string parent = trace ? traceparent_of(trace->parent) : "";
  const http::HopByHop hop(head.fields);
  for (const auto& field : head.fields) {
    if (field.known == FieldName::host || field.known == FieldName::expect || hop.drops(field)) {
      continue;
    }
    if (is_replaced(field.name, trace)) continue;
    if (is_key_field(field.name, settings) || keeps(route, field.name)) {
      secrets.fields.emplace_back(field.name, field.value);
    } else if (same_name(field.name, "Prefer")) {
      const auto& left = preferences.emplace_back(without_met(field.value));
      if (!left.empty()) stored.fields.emplace_back(field.name, left);
    } else if (!is_credential(field.name, settings)) {
      stored.fields.emplace_back(field.name, field.value);
    }
  }
  if (trace) stored.fields.emplace_back(traceparent_field, parent);
  const std::string sealed =
      seal(sealing_secrets(identity, settings).front(), encode_secrets(secrets), bound_to(stored));
  stored.sealed = sealed;
  return encode_request(stored);
}

void RestoredRequest::make_head(const StoredRequest& stored, const RequestSecrets& secrets) {
  head_.method = stored.method;
  head_.target = stored.target;
  head_.origin_form = stored.target;
  head_.host = stored.host;
  head_.minor_version = stored.minor_version;
  for (const auto* fields : {&stored.fields, &secrets.fields}) {
    for (const auto& [name, value] : *fields) {
      head_.fields.push_back({name, value, http::known_field(name)});
    }
  }
  body_ = stored.body;
}

std::expected<std::unique_ptr<RestoredRequest>, std::string> RestoredRequest::read(
    Claimed& claimed, const Identity& identity, const GatewaySettings& settings) {
  std::unique_ptr<RestoredRequest> restored(new RestoredRequest());
  restored->bytes_ = std::move(claimed.request);
  const auto stored = decode_request(restored->bytes_);
  if (!stored)
    return std::unexpected("the stored request cannot be read: " + std::string(stored.error()));
  const auto path = http::path_of(stored->target);
  restored->route_ = settings.routes.route_of(claimed.operation, stored->method, path);
  if (restored->route_ == nullptr) {
    return std::unexpected("no route has the name of its operation any more");
  }
  auto opened = unseal(sealing_secrets(identity, settings), stored->sealed, bound_to(*stored));
  if (!opened) {
    return std::unexpected(
        "its sealed part cannot be opened: none of the current async.secret_files sealed it, or it "
        "was changed");
  }
  restored->secret_bytes_ = std::move(*opened);
  const auto secrets = decode_secrets(restored->secret_bytes_);
  if (!secrets) return std::unexpected(std::string(secrets.error()));
  restored->make_head(*stored, *secrets);
  if (stored->sealed_for == claimed.id) return restored;
  // Accepted into a record under an older name: then that is one of its key's names.
  const auto ids = possible_ids(restored->head_, identity, settings, *restored->route_,
                                claimed.scope, std::string(secrets->key), Enforce::on);
  if (std::ranges::find(ids, claimed.id) != ids.end()) return restored;
  return std::unexpected("the stored request is that of another record");
}

}  // namespace idem::gateway
