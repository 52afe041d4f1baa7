#pragma once

#include "core/bytes/ascii.hpp"

#include <idem/record.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The meaning of a complete answer of the upstream, and which of its fields may be stored.
namespace idem {

enum class Disposition : std::uint8_t { store, release_proven, release_declared, unknown };

/// What the upstream declares about one response (`Idem-Outcome`, §12).
enum class DeclaredOutcome : std::uint8_t { store, not_executed, unknown };
/// None for any other value.
std::optional<DeclaredOutcome> parse_declared_outcome(std::string_view value) noexcept;

struct AnswerFacts {
  int status = 0;
  bool has_retry_after = false;
  /// The answer came before the request was sent completely.
  bool while_sending = false;
  std::optional<DeclaredOutcome> declared;
};

/// The columns of §12.
enum class Preset : std::uint8_t { ietf, stripe, lenient };
/// A route's rule for a status; `release` is a declared one.
enum class StatusRule : std::uint8_t { store, release, unknown };

/// A route's rules for complete answers.
struct AnswerPolicy {
  Preset preset = Preset::ietf;
  std::map<int, StatusRule> statuses{};
  /// The service promises that an error status means its transaction was rolled back: then a 5xx is
  /// a proof. Not 502, 503 and 504: a proxy in front of the service may have sent those, also after
  /// it had sent the request on.
  bool errors_rolled_back = false;
};

/// In this order: the proofs of protocol.md §11 (`unknown` if the upstream's declaration
/// contradicts one), the upstream's declaration, the route's rule, the preset's column of §12.
Disposition disposition(const AnswerFacts& facts, const AnswerPolicy& policy) noexcept;

/// False for fields that are never stored nor replayed (§14): credentials, cookies, hop-by-hop ones
/// and Idem's own. `allowed` may name fields that are only withheld. Names are compared without
/// case.
bool may_store(std::string_view field_name, std::span<const std::string> allowed = {}) noexcept;

/// Removes the fields that are never stored, and those that a Connection field among them names
/// (RFC 9110 §7.6.1): they are of that connection only.
void keep_storable(std::vector<Field>& fields, std::span<const std::string> allowed = {});

/// True for fields that are withheld for their content (cookies, credentials): an operator may
/// allow them. False for fields that frame a message or a connection, which are never stored.
bool is_withheld(std::string_view field_name) noexcept;

/// True for the names that Idem reserves on both sides: `Idem-*`, `Idempotent-Replayed`,
/// `Idempotency-Outcome`, `Idempotency-Expires`.
bool is_reserved_field(std::string_view field_name) noexcept;

}  // namespace idem
