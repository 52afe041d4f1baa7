#include "core/exchange/policy.hpp"

#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <array>

namespace idem {
namespace {

template <class Names>
bool is_among(std::string_view name, const Names& names) noexcept {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view other) { return equal_names(name, other); });
}

bool has_prefix(std::string_view name, std::string_view prefix) noexcept {
  return name.size() >= prefix.size() && equal_names(name.substr(0, prefix.size()), prefix);
}

// RFC 9110 §15.5.20 (421), RFC 8470 §5.2 (425), RFC 9110 §15.5.9 (408 before all was sent): these
// answers prove that the request was not processed. 417 proves it only for an Expect of the
// gateway's own, and the gateway never adds one.
bool proves_not_executed(const AnswerFacts& facts) noexcept {
  return facts.status == 421 || facts.status == 425 || (facts.status == 408 && facts.while_sending);
}

}  // namespace

std::optional<DeclaredOutcome> parse_declared_outcome(std::string_view value) noexcept {
  if (value == "store") return DeclaredOutcome::store;
  if (value == "not-executed") return DeclaredOutcome::not_executed;
  if (value == "unknown") return DeclaredOutcome::unknown;
  return std::nullopt;
}

namespace {

Disposition as_disposition(DeclaredOutcome declared) noexcept {
  switch (declared) {
    case DeclaredOutcome::store:
      return Disposition::store;
    case DeclaredOutcome::not_executed:
      return Disposition::release_proven;
    case DeclaredOutcome::unknown:
      return Disposition::unknown;
  }
  return Disposition::unknown;
}

Disposition as_disposition(StatusRule rule) noexcept {
  switch (rule) {
    case StatusRule::store:
      return Disposition::store;
    case StatusRule::release:
      return Disposition::release_declared;
    case StatusRule::unknown:
      return Disposition::unknown;
  }
  return Disposition::unknown;
}

// A row of §12 in the order of its columns.
Disposition of_row(Preset preset, Disposition ietf, Disposition stripe,
                   Disposition lenient) noexcept {
  switch (preset) {
    case Preset::ietf:
      return ietf;
    case Preset::stripe:
      return stripe;
    case Preset::lenient:
      return lenient;
  }
  return ietf;
}

Disposition by_preset(const AnswerFacts& facts, Preset preset) noexcept {
  using enum Disposition;
  switch (facts.status) {
    case 401:
    case 403:
    case 429:
      return release_declared;
    case 408:
      return of_row(preset, unknown, store, release_declared);
    case 409:
      return facts.has_retry_after ? of_row(preset, unknown, store, release_declared) : store;
    case 502:
    case 504:
      return of_row(preset, unknown, store, unknown);
    default:
      return facts.status < 500 ? store : of_row(preset, unknown, store, release_declared);
  }
}

bool names(std::string_view list, std::string_view name) noexcept {
  for (;;) {
    const auto comma = list.find(',');
    if (equal_names(trimmed(list.substr(0, comma)), name)) return true;
    if (comma == list.npos) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

Disposition disposition(const AnswerFacts& facts, const AnswerPolicy& policy) noexcept {
  if (proves_not_executed(facts)) {
    // Another declaration contradicts the proof, so the gateway believes neither.
    const bool alone =
        facts.declared.value_or(DeclaredOutcome::not_executed) == DeclaredOutcome::not_executed;
    return alone ? Disposition::release_proven : Disposition::unknown;
  }
  if (facts.declared) return as_disposition(*facts.declared);
  if (const auto rule = policy.statuses.find(facts.status); rule != policy.statuses.end()) {
    return as_disposition(rule->second);
  }
  const bool of_the_service = facts.status >= 500 && (facts.status < 502 || facts.status > 504);
  if (policy.errors_rolled_back && of_the_service) return Disposition::release_proven;
  return by_preset(facts, policy.preset);
}

bool is_reserved_field(std::string_view name) noexcept {
  return has_prefix(name, "Idem-") || equal_names(name, "Idempotent-Replayed") ||
         equal_names(name, "Idempotency-Outcome") || equal_names(name, "Idempotency-Expires");
}

bool is_withheld(std::string_view name) noexcept {
  static constexpr std::array<std::string_view, 6> withheld{
      "Set-Cookie",          "Set-Cookie2", "WWW-Authenticate",
      "Authentication-Info", "Alt-Svc",     "Clear-Site-Data"};
  return is_among(name, withheld);
}

bool may_store(std::string_view name, std::span<const std::string> allowed) noexcept {
  static constexpr std::array<std::string_view, 10> never{
      "Connection", "Keep-Alive",     "TE",  "Trailer",          "Transfer-Encoding",
      "Upgrade",    "Content-Length", "Via", "Proxy-Connection", "Authorization"};
  if (is_withheld(name)) return is_among(name, allowed);
  return !is_among(name, never) && !has_prefix(name, "Proxy-") && !is_reserved_field(name);
}

void keep_storable(std::vector<Field>& fields, std::span<const std::string> allowed) {
  std::vector<std::string> of_the_connection;
  for (const Field& field : fields) {
    if (equal_names(field.name, "Connection")) of_the_connection.push_back(field.value);
  }
  std::erase_if(fields, [&](const Field& field) {
    return !may_store(field.name, allowed) ||
           std::ranges::any_of(of_the_connection,
                               [&](const auto& list) { return names(list, field.name); });
  });
}

}  // namespace idem
