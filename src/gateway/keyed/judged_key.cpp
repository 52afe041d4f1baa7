#include "gateway/keyed/judged_key.hpp"

#include "gateway/forward.hpp"
#include "gateway/keyed/reserve.hpp"
#include "http/alike.hpp"
#include "loop/store_link.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace idem::gateway {
namespace {

Problem key_problem(const KeyError& error) {
  const bool missing = error.code == KeyError::Code::missing;
  return {.code = missing ? ProblemCode::key_missing : ProblemCode::key_invalid,
          .detail = error.detail};
}

/// True for a field beside, or in place of, one that decides about the record, whose name a server
/// may read as that one's (P14): the upstream would run another request than the fingerprint says.
bool disguises_what_we_rely_on(const http::RequestHead& head, const Route& route) {
  const auto poses = [](std::string_view name, std::string_view as) {
    return http::alike(name, as) && !http::same_name(name, as);
  };
  return std::ranges::any_of(head.fields, [&](const http::FieldView& field) {
    if (field.known != http::FieldName::other) return false;
    const auto is_chosen = [&](const std::string& chosen) {
      return http::same_name(field.name, chosen);
    };
    if (std::ranges::any_of(route.fingerprint.headers, is_chosen)) return false;  // It counts, too.
    return poses(field.name, "Content-Type") || poses(field.name, "Content-Encoding") ||
           std::ranges::any_of(route.fingerprint.headers, [&](const std::string& chosen) {
             return poses(field.name, chosen);
           });
  });
}

Problem disguise_problem() {
  return {.code = ProblemCode::bad_request,
          .detail =
              "A server may read a field of this request as Content-Type, Content-Encoding or "
              "one of the route's fingerprint.headers. Nothing ran; send only the exact "
              "name."};
}

}  // namespace

std::expected<std::string, KeyError> read_key(const http::RequestHead& head,
                                              const GatewaySettings& settings,
                                              const KeyOptions& options) {
  std::array<std::string_view, 2> lines;
  std::size_t count = 0;
  std::optional<std::string_view> similar;
  for (const auto& field : head.fields) {
    if (is_key_field(field.name, settings)) {
      if (count < lines.size()) lines[count++] = field.value;
    } else if (is_like_key_field(field.name, settings)) {
      similar = field.value;
    }
  }
  if (similar && count == 1) lines[count++] = *similar;
  return parse_key(std::span(lines.data(), count), options);
}

JudgedKey judge_key(const http::RequestHead& head, const GatewaySettings& settings,
                    const Route& route, ClientTime now) {
  JudgedKey judged{read_key(head, settings, settings.key)};
  judged.new_key_rejection = judged.key ? refused_by_age(head, settings, route, *judged.key, now)
                                        : std::optional(key_problem(judged.key.error()));
  if (!disguises_what_we_rely_on(head, route)) return judged;
  // Under these policies a record whose lease is over would run again, as this request is.
  judged.is_refused = route.lease_policy != LeasePolicy::unknown;
  if (judged.is_refused || !judged.new_key_rejection) {
    judged.new_key_rejection = disguise_problem();
  }
  return judged;
}

Task<ExistingKey> existing_key(Loop& loop, Store& store, const http::RequestHead& head,
                               const GatewaySettings& settings, const Route& route,
                               const std::string& scope) {
  auto key = read_key(head, settings, KeyOptions{});
  if (!key) co_return std::nullopt;
  const auto ids =
      possible_ids(head, store.identity(), settings, route, scope, *key, route.enforce);
  for (const RecordId& id : ids) {
    StoreCall find = Find{id};
    auto asking = ask_store(loop, store, find);
    auto found = co_await asking;
    if (!found) co_return std::unexpected(std::move(found.error()));
    if (std::get<std::optional<Record>>(*found)) co_return std::move(*key);
  }
  co_return std::nullopt;
}

}  // namespace idem::gateway
