#pragma once

#include <idem/record.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What a complete answer of the upstream means, and which of its fields may be kept.
namespace idem {

enum class Disposition : std::uint8_t { store, release_proven, release_declared, unknown };

/// The upstream's own word about one response (`Idem-Outcome`, §12).
enum class UpstreamSays : std::uint8_t { store, not_executed, unknown };
/// Nothing for a value that is none of the three.
std::optional<UpstreamSays> parse_upstream_says(std::string_view value) noexcept;

struct AnswerFacts {
  int status = 0;
  bool has_retry_after = false;
  /// The answer came while we were still sending the request.
  bool while_sending = false;
  std::optional<UpstreamSays> says;
};

/// The columns of §12.
enum class Preset : std::uint8_t { ietf, stripe, lenient };
/// What a route may say about a status; `release` is a declared one.
enum class StatusRule : std::uint8_t { store, release, unknown };

/// What a route makes of complete answers.
struct AnswerPolicy {
  Preset preset = Preset::ietf;
  std::map<int, StatusRule> statuses{};
  /// The service promises that an error status means its transaction was rolled back: a 5xx is a
  /// proof then. Not 502, 503 and 504: whatever stands in front of the service may have said those,
  /// also after the request had been sent on.
  bool errors_rolled_back = false;
};

/// protocol.md §11's proofs first, unless the upstream's own word about this response contradicts
/// them (unknown); then that word, then what the route says, then the preset's column of §12.
Disposition disposition(const AnswerFacts& facts, const AnswerPolicy& policy) noexcept;

/// False for fields that are never stored nor replayed (§14): credentials, cookies, hop-by-hop ones
/// and Idem's own; those that are only withheld are true when `allowed` names them. Matching is
/// case-insensitive.
bool may_store(std::string_view field_name, std::span<const std::string> allowed = {}) noexcept;

/// True for fields that are withheld for what they say (cookies, credentials), so that an operator
/// may allow them; those that frame a message or a connection can never be.
bool is_withheld(std::string_view field_name) noexcept;

/// True for names that Idem keeps for itself on both sides: `Idem-*`, `Idempotent-Replayed`,
/// `Idempotency-Outcome`, `Idempotency-Expires`.
bool is_reserved_field(std::string_view field_name) noexcept;

namespace detail {
bool equal_names(std::string_view a, std::string_view b) noexcept;
}

/// ASCII case-insensitive equality of field names.
inline bool equal_names(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && (a.empty() || (a[0] | 0x20) == (b[0] | 0x20)) &&
         detail::equal_names(a, b);
}

}  // namespace idem
