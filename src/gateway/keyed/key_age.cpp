#include "gateway/keyed/key_age.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::gateway {
namespace {

Problem invalid(std::string detail) {
  return {.code = ProblemCode::key_invalid, .detail = std::move(detail)};
}

std::optional<Problem> judged(ClientTime sent, std::string_view what, const Route& route,
                              ClientTime now) {
  switch (judge(sent, new_key_age_max(route), now)) {
    case ClientTimeIs::fine:
      return std::nullopt;
    case ClientTimeIs::ahead:
      return invalid(std::string(what) + " lies in the future.");
    case ClientTimeIs::too_old:
      break;
  }
  return Problem{
      .code = ProblemCode::key_expired,
      .detail = std::string(what) +
                " is longer ago than Idem keeps answers, so an earlier request may have run. "
                "Nothing ran now."};
}

std::optional<Problem> refused_by_key(std::string_view key, KeyTimeRule rule, const Route& route,
                                      ClientTime now) {
  if (rule == KeyTimeRule::ignored) return std::nullopt;
  if (const auto made = time_of_key(key)) {
    return judged(*made, "The time in the idempotency key", route, now);
  }
  if (rule == KeyTimeRule::checked) return std::nullopt;
  return invalid(
      "The idempotency key must contain the time at which it was made: a UUID of version 7 (RFC "
      "9562) "
      "or a ULID.");
}

std::optional<Problem> refused_by_first_sent(const http::RequestHead& head, const Route& route,
                                             ClientTime now) {
  std::optional<std::string_view> value;
  for (const auto& field : head.fields) {
    if (!http::same_name(field.name, first_sent_field)) continue;
    if (value) return invalid("The request has more than one Repeatability-First-Sent field.");
    value = field.value;
  }
  if (!value) return std::nullopt;
  const auto sent = parse_imf_fixdate(*value);
  if (!sent) {
    return invalid(
        "Repeatability-First-Sent is not a date such as Sun, 06 Nov 1994 08:49:37 GMT (RFC 9110 "
        "5.6.7, IMF-fixdate).");
  }
  return judged(*sent, "Repeatability-First-Sent", route, now);
}

}  // namespace

Millis new_key_age_max(const Route& route) noexcept {
  return std::min<Millis>(route.retention,
                          route.retention + route.tombstone - limits::key_time_skew);
}

std::optional<Problem> refused_by_age(const http::RequestHead& head,
                                      const GatewaySettings& settings, const Route& route,
                                      std::string_view key, ClientTime now) {
  if (auto refusal = refused_by_key(key, settings.key_time, route, now)) return refusal;
  if (!settings.honours_first_sent) return std::nullopt;
  return refused_by_first_sent(head, route, now);
}

}  // namespace idem::gateway
