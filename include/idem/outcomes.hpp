#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

/// @file
/// How a call of the store can end: its errors, and the outcomes of a reserve and of an owner's
/// verb (protocol.md §5).
namespace idem::inline v0_1 {

/// The code says what the caller should do; `detail` names the cause for people.
struct [[nodiscard]] StoreError {
  /// What became of the call.
  enum class Code : std::uint8_t {
    unavailable,  ///< The store changed nothing. Ask again later.
    in_doubt,     ///< The store may have applied it. Repeat with the same token, or read.
    refused,      ///< Never valid in this form (generation changed, unsafe set-up).
    damaged,      ///< The stored bytes are not those written. The key never runs; a person looks.
    unstorable,   ///< This store cannot hold these values, now or later. It changed nothing.
  };
  Code code = Code::unavailable;
  std::string detail;
  std::optional<RecordId> record{};  ///< The damaged one.

  /// True: asking again cannot help.
  bool is_final() const noexcept {
    return code == Code::refused || code == Code::damaged || code == Code::unstorable;
  }
};

// ---- the outcomes of a reserve (§5) ----
// `id` names the record. It differs from the reserve's if the store found the record under an older
// secret or name.

/// The caller has won the right to execute.
struct Execute {
  RecordId id;
  Attempt attempt;
  std::string recovery_point;
  bool again = false;  ///< A record existed: released or interrupted work runs once more.
  bool ended_lease =
      false;  ///< The lease of the attempt before was over, and this reserve ended it.
};
/// The record is completed; this is its answer.
struct Replay {
  StoredResponse response;
  StoreTime completed_at;
  StoreTime expires_at;
  RecordId id{};
  Millis expires_in{};           ///< From the store's now; the record does not change before.
  std::optional<Fence> fence{};  ///< Of the attempt that completed, if known.
};
/// Another attempt has the record.
struct InProgress {
  Millis lease_remaining;  ///< > 0
  RecordId id{};
  /// Of the attempt that runs; a waiter waits for this one only (§7). None: another transaction is
  /// making it.
  std::optional<Fence> fence{};
  StoreTime locked_until{};  ///< The end of its lease; Find shows later renewals.
  /// The store holds its request: it goes on even if no client asks again.
  bool is_stored = false;
};
/// The key was used for another request.
struct KeyMisuse {
  State state;
  /// False: the two requests may be the same, in other bytes or under other rules: see
  /// prove_two_requests().
  bool is_other = true;
  RecordId id{};
};
/// It is unknown whether an earlier attempt ran; evidence ends that state.
struct Unknown {
  StoreTime since;
  std::optional<Millis> reconcile_in;  ///< From now; absent when nothing is scheduled.
  RecordId id{};
  bool ended_lease = false;  ///< As in Execute.
};
/// The record completed; the store no longer keeps its answer.
struct Expired {
  StoreTime completed_at;
  RecordId id{};
};
/// The request is stored and waits for a dispatcher.
struct Pending {
  RecordId id{};
  bool ended_lease = false;  ///< As in Execute.
};
/// The key is new, and the quota of its scope has no room for it; nothing was written.
struct QuotaExceeded {
  Millis retry_after;  ///< > 0
};
/// Exactly one of the outcomes above.
using ReserveOutcome =
    std::variant<Execute, Replay, InProgress, KeyMisuse, Unknown, Expired, Pending, QuotaExceeded>;

/// How an owner's verb ended.
enum class Verdict : std::uint8_t {
  done,     ///< Applied now, or before by the same call (repeats are safe).
  settled,  ///< This attempt had ended before; that ending remains. Read the record.
  stale,    ///< Another attempt, or none, has the record. Nothing changed. Read the record.
};
/// The reply to an owner's verb.
struct OwnerReply {
  Verdict verdict = Verdict::stale;
  std::optional<State> state;           ///< The record's state now; none if there is no record.
  std::optional<StoreTime> expires_at;  ///< As it is now, if the state has one.
  /// Of an applied completion: a provider's event had said otherwise, so the record is contested.
  bool is_contradicted = false;
  bool operator==(const OwnerReply&) const = default;
};

}  // namespace idem::inline v0_1
