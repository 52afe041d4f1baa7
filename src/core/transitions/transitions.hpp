#pragma once

#include <idem/store.hpp>

#include <span>

/// The state machine of protocol.md §3–§5, pure: `now` is an argument, nothing touches the world.
/// Every store whose steps are C++ makes its changes through these functions and through no others;
/// what they do not do cannot happen.
///
/// Conventions that §3 leaves open:
///  - `locked_until` of a pending record is the moment before which nobody may claim it;
///  - created_at is the record's first moment and survives a retry; changed_at moves with the
///  state;
///  - an attempt's fence and token stay in the record after it ended, until the next attempt, so
///  that
///    its own late answer can be told from anybody else's;
///  - `expires_at` of an asynchronous record is set by its acceptance and kept through its
///  attempts,
///    during which it means nothing.
namespace idem::transitions {

/// Where fences come from: store-wide, growing. The store makes `last` durable with the step.
struct FenceCounter {
  Fence last = 0;
  Fence next() noexcept { return ++last; }
};

enum class Write : std::uint8_t { none, insert, update, erase };

/// What the store has to make durable before it answers.
struct Change {
  Write write = Write::none;
  bool response = false;  ///< Record::response differs from what is stored.
  bool request = false;   ///< Record::stored_request differs from what is stored.
};

template <class Outcome>
struct Step {
  Outcome outcome;
  Change change;
};

// ---- reading ----

/// False for what counts as no record though it may still lie there: a failed_retryable past its
/// expiry, a completed or expired one past its tombstone.
bool is_live(const Record& record, StoreTime now) noexcept;

/// The state as it reads now: completed past its expiry reads as expired.
State state_at(const Record& record, StoreTime now) noexcept;

/// Find's view: none if not live; expired records read as such, without their answer.
std::optional<Record> view(std::optional<Record> record, StoreTime now);

/// The next moment at which sweep() or reap() would do something; none for records that only an
/// event from outside can change (unknown; an expired lease that a reserve must resume).
std::optional<StoreTime> due_at(const Record& record) noexcept;

// ---- the right to execute ----

/// True when one of those that a reserve offers is the stored one. It looks at all of them, so that
/// the time taken does not tell which one it was.
bool any_matches(const std::vector<Fingerprint>& offered, const Fingerprint& stored) noexcept;

/// §5. `record` is the one that was found, or none; `offered` are the fingerprints to compare it
/// with, which are others than the verb's where it was found under an older secret. A record that
/// is not live counts as none: the outcome is then an insert, and the store first erases what lay
/// there. When the answer is Replay and nothing is to be written, the stored answer has been moved
/// out of `record`.
Step<ReserveOutcome> reserve(std::optional<Record>& record, const Reserve& verb,
                             const std::vector<Fingerprint>& offered, StoreTime now,
                             FenceCounter& fences);
Step<ReserveOutcome> accept(std::optional<Record>& record, Accept& verb,
                            const std::vector<Fingerprint>& offered, StoreTime now);

/// Pending, due, not past its expiry.
bool is_claimable(const Record& record, StoreTime now) noexcept;
/// `record` must be claimable.
Step<Claimed> claim(Record& record, const Claim& verb, StoreTime now, FenceCounter& fences);

// ---- the owner ----

Step<OwnerReply> dispatched(std::optional<Record>& record, const Dispatched& verb, StoreTime now);
Step<OwnerReply> renew(std::optional<Record>& record, const Renew& verb, StoreTime now);
Step<OwnerReply> advance(std::optional<Record>& record, Advance& verb, StoreTime now);
Step<OwnerReply> complete(std::optional<Record>& record, Complete& verb, StoreTime now);
Step<OwnerReply> release(std::optional<Record>& record, Release& verb, StoreTime now);
Step<OwnerReply> mark_unknown(std::optional<Record>& record, MarkUnknown& verb, StoreTime now);

// ---- evidence ----

/// With the line for the evidence log, which is appended whatever the verdict. Where there is no
/// record its `before` and `after` are State{}, which is none of the states.
struct EvidenceStep {
  Resolve::Reply outcome;
  Change change;
  EvidenceEntry entry;
};
EvidenceStep resolve(std::optional<Record>& record, Resolve& verb, StoreTime now);
/// `log` is the record's, oldest first.
EvidenceStep cache_bust(std::optional<Record>& record, const CacheBust& verb,
                        std::span<const EvidenceEntry> log, StoreTime now);
EvidenceStep reschedule(std::optional<Record>& record, const Reschedule& verb, StoreTime now);

// ---- time ----

/// Ends an expired lease or a pending request past its expiry; otherwise nothing.
Change sweep(Record& record, StoreTime now);
/// Of an attempt whose process is known to be dead, whatever is left of its lease: ends it where
/// that alone decides what becomes of the record; otherwise nothing. What may be resumed or run
/// again keeps its lease: its upstream, or a provider, may still be at what the dead one has sent,
/// and the next attempt would send it once more beside that.
Change end_cut_off(Record& record, StoreTime now);
/// Drops what is due, one step of §3's table at a time; otherwise nothing.
Change reap(Record& record, StoreTime now);

}  // namespace idem::transitions
