#pragma once

#include <idem/store.hpp>

#include <algorithm>
#include <atomic>
#include <span>

/// The state machine of protocol.md §3–§5, pure: `now` is an argument, and there is no I/O. Every
/// store whose steps are C++ makes all its changes through these functions.
///
/// Conventions that §3 leaves open:
///  - `locked_until` of a pending record is the moment before which no claim may begin;
///  - created_at is the record's first moment and survives a retry;
///  - changed_at moves with the state;
///  - an attempt's fence and token stay in the record until the next attempt, for its late answer;
///  - accept sets `expires_at`; it stays through the attempts, during which it means nothing.
namespace idem::transitions {

/// Grants fences: store-wide, growing. The store makes `last` durable with the step.
struct FenceCounter {
  Fence last = 0;                        ///< This counter granted none above it.
  std::atomic<Fence>* common = nullptr;  ///< The last one of all counters of the store, if several.

  Fence next() noexcept { return last = common != nullptr ? common->fetch_add(1) + 1 : last + 1; }
  /// No fence up to `floor` is granted from now on.
  void raise(Fence floor) noexcept {
    last = std::max(last, floor);
    if (common == nullptr) return;
    Fence present = common->load();
    while (present < floor && !common->compare_exchange_weak(present, floor)) {
    }
  }
};

enum class Write : std::uint8_t { none, insert, update, erase };

/// The parts of a record that the store must make durable before it replies.
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

/// False for a row that counts as no record: failed_retryable after its expiry, completed or
/// expired after its tombstone.
bool is_live(const Record& record, StoreTime now) noexcept;

/// The state as it reads now: completed past its expiry reads as expired.
State state_at(const Record& record, StoreTime now) noexcept;

/// Find's view: none if not live; expired records read as such, without their answer.
std::optional<Record> view(std::optional<Record> record, StoreTime now);

/// The next moment at which sweep() or reap() would change the record; none if time alone changes
/// nothing (unknown; an expired lease that a reserve must resume).
std::optional<StoreTime> due_at(const Record& record) noexcept;

// ---- the right to execute ----

/// True if a reserve offers the stored fingerprint. Compares all that it offers, so that the time
/// does not depend on which one matches.
bool any_matches(const std::vector<Fingerprint>& offered, const Fingerprint& stored) noexcept;

/// §5. `record` is the record that was found, or none. It is compared with `offered`, which differs
/// from the verb's fingerprints if it was found under an older secret. A record that is not live
/// counts as none: the change is then an insert, and the store first erases the old row. If the
/// outcome is Replay and nothing is to be written, the stored answer has been moved out of
/// `record`.
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

/// `entry` goes to the evidence log, whatever the verdict. Without a record its `before` and
/// `after` are State{}, which is none of the states.
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

/// Another form of what is stored; no decision, and no entry.
Step<Resolve::Reply> reseal(std::optional<Record>& record, Reseal& verb, StoreTime now);

// ---- time ----

/// Ends an expired lease or a pending request past its expiry; otherwise nothing.
Change sweep(Record& record, StoreTime now);
/// Ends an attempt whose process is known to be dead, before the end of its lease; changes nothing
/// if the attempt may be resumed or run again. Such an attempt keeps its lease: its upstream, or a
/// provider, may still be working on what the dead process sent, and the next attempt would send it
/// a second time.
Change end_cut_off(Record& record, StoreTime now);
/// For a store that a backup was restored to: what was not settled then may have run since, under
/// an attempt that the store knows nothing of. Such a record becomes unknown, with a fence of its
/// own unless its attempt was under way, and negative evidence from before `now` does not settle
/// it.
Change end_restored(Record& record, StoreTime now, FenceCounter& fences);
/// How far the fences of a restored store are ahead of its backup's: more than a store can grant in
/// half a year, so that none of those that were granted since comes again; and the 2^53 up to which
/// JSON numbers are exact leave room for thousands of restores.
inline constexpr Fence restored_fence_gap = Fence{1} << 40;
/// Drops the answer or the record if it is due, one step of §3's table at a time.
Change reap(Record& record, StoreTime now);

}  // namespace idem::transitions
