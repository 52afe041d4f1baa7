#include "store/postgres/cells.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace idem::postgres {
namespace {

constexpr std::array states{State::pending,          State::in_progress, State::completed,
                            State::failed_retryable, State::unknown,     State::expired};

std::optional<LeasePolicy> policy_of(std::string_view name) noexcept {
  if (name == "unknown") return LeasePolicy::unknown;
  if (name == "resume") return LeasePolicy::resume;
  if (name == "rerun") return LeasePolicy::rerun;
  return std::nullopt;
}

std::optional<ReleaseBasis> basis_of(std::string_view name) noexcept {
  if (name == "proven") return ReleaseBasis::proven;
  if (name == "declared") return ReleaseBasis::declared;
  return std::nullopt;
}

constexpr std::size_t fingerprint_bytes = 4 + sizeof(Fingerprint::digest);

std::optional<Fingerprint> fingerprint_of(std::string_view bytes) noexcept {
  if (bytes.size() != fingerprint_bytes) return std::nullopt;
  Fingerprint made;
  made.version = static_cast<std::uint32_t>(to_number(bytes.substr(0, 4)));
  std::ranges::transform(bytes.substr(4), made.digest.begin(),
                         [](char c) { return static_cast<std::uint8_t>(c); });
  return made;
}

}  // namespace

std::string record_columns(std::string_view request) {
  return "id, scope, operation, generation, fingerprint, state, fence, token, owner, locked_until,"
         " dispatched, lease_policy, retention, tombstone, recovery_point, " +
         std::string(request) +
         ", response_status,"
         " body_kept, release_basis, last_error_code, reconcile_after, reconcile_attempts,"
         " upstream_reference, created_at, changed_at, completed_at, expires_at, tombstone_until,"
         " contested, provider, sealed_key, charged";
}

std::optional<Millis> Cells::optional_millis() {
  if (is_null()) return skip(), std::nullopt;
  return millis();
}

std::optional<StoreTime> Cells::optional_moment() {
  if (is_null()) return skip(), std::nullopt;
  return moment();
}

State Cells::state_of(std::string_view name) noexcept {
  const auto found = std::ranges::find(states, name, [](State state) { return name_of(state); });
  return found == states.end() ? State{} : *found;
}

StoreError damaged(std::string_view why, std::optional<RecordId> record) {
  return {StoreError::Code::damaged, "the record is damaged: " + std::string(why), record};
}

std::string bytes_of(const std::vector<Fingerprint>& fingerprints) {
  std::string bytes;
  bytes.reserve(fingerprints.size() * fingerprint_bytes);
  for (const Fingerprint& fingerprint : fingerprints) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>(fingerprint.version >> shift);
    }
    bytes.append(reinterpret_cast<const char*>(fingerprint.digest.data()),
                 fingerprint.digest.size());
  }
  return bytes;
}

std::expected<Record, StoreError> to_record(Cells& cells) {
  Record record;
  record.id = cells.id();
  record.scope = cells.text();
  record.operation = cells.text();
  record.generation = static_cast<std::uint64_t>(cells.number());
  const auto fingerprint = fingerprint_of(cells.bytes());
  record.state = cells.state();
  const auto fence = cells.fence();
  const Token token{to_uuid(cells.bytes())};
  if (fence) record.attempt = Attempt{*fence, token};
  record.owner = cells.text();
  record.locked_until = cells.moment();
  record.dispatched = cells.boolean();
  const auto policy = policy_of(cells.bytes());
  record.retention = cells.millis();
  record.tombstone = cells.millis();
  record.recovery_point = cells.text();
  if (cells.is_null()) {
    cells.skip();
  } else {
    record.stored_request = std::string(cells.bytes());
  }
  const bool is_answered = !cells.is_null();
  const auto status = static_cast<int>(cells.number());
  const bool body_kept = cells.boolean();
  if (is_answered) record.response = StoredResponse{status, {}, {}, body_kept};
  record.release_basis = basis_of(cells.bytes());
  record.last_error_code = cells.text();
  record.reconcile_after = cells.optional_moment();
  record.reconcile_attempts = static_cast<std::uint32_t>(cells.number());
  record.upstream_reference = cells.text();
  record.created_at = cells.moment();
  record.changed_at = cells.moment();
  record.completed_at = cells.optional_moment();
  record.expires_at = cells.optional_moment();
  record.tombstone_until = cells.optional_moment();
  record.is_contested = cells.boolean();
  record.provider = cells.text();
  record.sealed_key = std::string(cells.bytes());
  record.charged = static_cast<std::uint64_t>(cells.number());
  if (!fingerprint || !policy || record.state == State{}) {
    return std::unexpected(damaged("a member has an unknown value"));
  }
  if (!fence && token != Token{}) {
    return std::unexpected(damaged("its attempt has a token and no fence"));
  }
  record.fingerprint = *fingerprint;
  record.lease_policy = *policy;
  return record;
}

}  // namespace idem::postgres
