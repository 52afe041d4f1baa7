#pragma once

#include <idem/record.hpp>
#include <idem/route_name.hpp>
#include <idem/worker_limits.hpp>

#include <array>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// @file
/// The store port: the protocol's verbs (protocol.md §3–§5) as values, answered by completion. What
/// a store *is* stands in tests/store_conformance, which every store passes by URL.
namespace idem::inline v0_1 {

/// What the caller should do, not what broke; `detail` says that for people.
struct StoreError {
  /// What it means for what was asked.
  enum class Code : std::uint8_t {
    unavailable,  ///< Nothing was changed. Ask again later.
    in_doubt,     ///< It may or may not have been done. Repeat with the same token, or read.
    refused,      ///< Never valid as asked (generation changed, unsafe set-up).
    damaged,      ///< What lies there is not what was written. Its key never runs: people look.
  };
  Code code = Code::unavailable;
  std::string detail;
  std::optional<RecordId> record{};  ///< Which one is damaged.

  /// Asking again cannot help.
  bool is_final() const noexcept { return code == Code::refused || code == Code::damaged; }
};

// ---- what a reserve is answered with (§5) ----
// `id` is the record's: it differs from the asked one where it was found under an older secret or
// name.

/// The right to execute is won.
struct Execute {
  RecordId id;
  Attempt attempt;
  std::string recovery_point;
  bool again = false;  ///< There was a record: what was released or cut off is run once more.
};
/// It completed: this is the answer.
struct Replay {
  StoredResponse response;
  StoreTime completed_at;
  StoreTime expires_at;
  RecordId id{};
  Millis expires_in{};  ///< From the store's now: until then the record stays as it is.
  Fence fence = 0;      ///< Of the attempt that completed; 0: not told.
};
/// Another attempt has it.
struct InProgress {
  Millis lease_remaining;  ///< > 0
  RecordId id{};
  Fence fence = 0;           ///< Of the attempt that runs: who waits, waits for this one (§7).
  StoreTime locked_until{};  ///< The end of its lease; Find tells how far it was moved since.
  /// Its request is stored: it goes on whether or not anybody asks again.
  bool is_stored = false;
};
/// The key was used for something else.
struct KeyMisuse {
  State state;
  /// False: the record was made under other rules of what counts of a request, so that this may be
  /// the same one.
  bool is_other = true;
  RecordId id{};
};
/// Nobody knows whether an earlier attempt ran; evidence ends that.
struct Unknown {
  StoreTime since;
  std::optional<Millis> reconcile_in;  ///< From now; absent when nothing is scheduled.
  RecordId id{};
};
/// It completed; the answer is not kept any more.
struct Expired {
  StoreTime completed_at;
  RecordId id{};
};
/// The request is stored, and waits for a dispatcher.
struct Pending {
  RecordId id{};
};
/// The key is new, and the quota of its scope has no room for it; nothing was written.
struct QuotaExceeded {
  Millis retry_after;  ///< > 0
};
/// Exactly one of these.
using ReserveOutcome =
    std::variant<Execute, Replay, InProgress, KeyMisuse, Unknown, Expired, Pending, QuotaExceeded>;

/// How an owner's verb ended.
enum class Verdict : std::uint8_t {
  done,     ///< Applied, or had been applied by this very call before (repeats are safe).
  settled,  ///< This attempt had already ended; the first ending stands. Read the record.
  stale,    ///< Another attempt, or nobody, has the record. Nothing changed. Read the record.
};
/// What an owner's verb is answered with.
struct OwnerReply {
  Verdict verdict = Verdict::stale;
  std::optional<State> state;           ///< The state it is in now; none if there is no record.
  std::optional<StoreTime> expires_at;  ///< As it is now, when the state has one.
  /// Of a completion that was done: an event had said otherwise, so the record is contested.
  bool is_contradicted = false;
  bool operator==(const OwnerReply&) const = default;
};

// ---- the verbs ----

/// Another name under which a record of the same request may lie.
struct OtherName {
  RecordId id;
  /// What such a record was stored with, made under the secret that made `id`; empty: those of the
  /// reserve itself.
  std::vector<Fingerprint> fingerprints{};
};

/// What a scope may have, all its gateways together. Looked at only where a reserve would make a
/// new record, and counted only of records that were made with one; a zero sets no limit.
struct Quota {
  /// One new key in each such time on average,
  std::chrono::microseconds new_key_interval{};
  /// of which so many may come together. At least 1.
  std::uint32_t new_keys_at_once = 1;
  /// Keys whose records have not expired, whatever their state.
  std::uint64_t active_keys = 0;
  /// `limits::record_charge` for each of them, and what its stored request and a larger answer take
  /// besides; `limits::tombstone_charge` for each one that has expired.
  std::uint64_t stored_bytes = 0;
  bool operator==(const Quota&) const = default;
};

/// Less than any record takes: with it a reserve makes none, and is answered from one that there
/// is.
inline constexpr Quota no_room{.stored_bytes = 1};

/// Win the right to execute (§5). One atomic step; durable before the reply. Repeating it with the
/// same token gives the same attempt while that still runs. An expired lease is swept on the way.
struct Reserve {
  using Reply = ReserveOutcome;
  RecordId id;
  /// Where an older secret or a former name would have put it. Of several records the one of the
  /// same request counts, then the one that comes first.
  std::vector<OtherName> also;
  std::string scope;
  std::string operation;
  /// One per live version; the first is what is stored, and what misuse is judged by.
  std::vector<Fingerprint> fingerprints;
  Token token;
  std::string owner;
  Millis lease{};
  LeasePolicy lease_policy = LeasePolicy::unknown;
  bool dispatched = true;  ///< §11: marked with the reserve; false when a separate mark follows.
  Millis retention{};
  Millis tombstone{};            ///< 0: the key may run again after its expiry.
  std::optional<Quota> quota{};  ///< None: the record is counted for nobody.
  /// Kept with the attempt that it grants: Record::provider and Record::sealed_key.
  std::string provider{};
  std::string sealed_key{};
  std::uint64_t generation = 0;  ///< Must be the store's; otherwise refused, nothing changed.
};

/// Store an asynchronous request as pending (§3, §7). Answered with Pending when this call or an
/// earlier one stored it, otherwise with what the record says.
struct Accept {
  using Reply = ReserveOutcome;
  Reserve as;  ///< `token`, `owner`, `lease`, `dispatched` are not used.
  std::string request;
};

/// A pending request and the right to execute it.
struct Claimed {
  RecordId id;
  std::string scope;
  std::string operation;
  Attempt attempt;
  std::string request;
  std::string recovery_point;
};
/// Take the oldest pending request that is due, under a new attempt. None: nothing is due.
struct Claim {
  using Reply = std::optional<Claimed>;
  Token token;
  std::string owner;
  Millis lease{};
  bool dispatched = true;
};

/// Note that the first byte is about to leave (§11). Done only while the lease holds.
struct Dispatched {
  using Reply = OwnerReply;
  RecordId id;
  Attempt attempt;
};
/// Extend the lease to `lease` from now. Stale once it has run out.
struct Renew {
  using Reply = OwnerReply;
  RecordId id;
  Attempt attempt;
  Millis lease{};
};
/// Note that a phase committed (§16).
struct Advance {
  using Reply = OwnerReply;
  RecordId id;
  Attempt attempt;
  std::string recovery_point;
};
/// End the attempt with an answer. Also from failed_retryable, pending and unknown, for the attempt
/// that the record came from: the owner's own late answer is the best evidence (§3).
struct Complete {
  using Reply = OwnerReply;
  RecordId id;
  Attempt attempt;
  StoredResponse response;
  std::string upstream_reference;
};
/// End the attempt as not executed. With a stored request the record becomes pending again, not
/// before `retry_in`.
struct Release {
  using Reply = OwnerReply;
  RecordId id;
  Attempt attempt;
  ReleaseBasis basis = ReleaseBasis::proven;
  std::string error_code;
  Millis retry_in{};
};
/// End the attempt without knowing.
struct MarkUnknown {
  using Reply = OwnerReply;
  RecordId id;
  Attempt attempt;
  std::string error_code;
  std::optional<Millis> reconcile_in;
  std::string upstream_reference;
};

/// Settle an unknown record by evidence, or end a pending / failed_retryable one by positive
/// evidence (§3, §19). The evidence is appended to the log in every case, also when it is refused.
///
/// That nothing is there proves nothing as long as the attempt could still send: as
/// failed_retryable it counts only if it was observed after the end of the attempt's lease and
/// `grace`, by the store's clock. One from the future is none.
///
/// That it was done, said of an attempt that still runs, of one with a stored 5xx, without an
/// answer, or without saying which attempt (fence 0), is not applied; but it contests the record:
/// such an attempt is not released, no later "not there" frees it, and no later word that it was
/// refused completes it (by_evidence). One that would run again, failed_retryable or pending behind
/// an attempt, becomes unknown by it.
struct Resolve {
  /// What the evidence says: it was done, or it was not.
  enum class As : std::uint8_t { completed, failed_retryable };
  /// What became of it.
  enum class Verdict : std::uint8_t {
    done,
    not_found,
    wrong_state,
    wrong_fence,
    missing_response,
    too_early,
    by_evidence,  ///< What is stored was found out, or evidence contests it: it is not freed.
    superseded,   ///< Of a Reschedule: somebody else has planned since it was read.
  };
  /// With the state that the record is in now.
  struct Reply {
    Verdict verdict = Verdict::not_found;
    std::optional<State> state;
    bool is_contradicted = false;  ///< As in OwnerReply.
    bool operator==(const Reply&) const = default;
  };
  RecordId id;
  As as = As::completed;
  Fence fence = 0;                         ///< The attempt that the evidence speaks of.
  std::optional<StoredResponse> response;  ///< Needed for `completed`.
  std::string source;
  std::string evidence;
  std::string reason;
  StoreTime observed_at{};
  Millis grace{};  ///< How long its source may take to show what was done.
  /// Of `completed`: the work was refused. A contested record is not completed so, and none is
  /// contested by it.
  bool denies = false;
};
/// An operator's cache-bust: a completed record with a stored 5xx becomes failed_retryable. Not one
/// that a Resolve completed: that the work ran was found out, and a 5xx in that answer changes
/// nothing about it.
struct CacheBust {
  using Reply = Resolve::Reply;
  RecordId id;
  Fence fence = 0;  ///< The attempt whose answer it is: what was decided about one frees no other.
  std::string reason;
  std::string source = "operator";  ///< Who decided it.
};

/// Plans when somebody next tries to find out about an unknown record (§19). Of several that have
/// read the same plan one succeeds, so that each turn is one asker's; a crash behind it leaves the
/// record due again. What is known stays as it is.
struct Reschedule {
  using Reply = Resolve::Reply;
  RecordId id;
  Fence fence = 0;                       ///< The attempt that is asked about.
  std::uint32_t attempts = 0;            ///< As it was read; there is one more then.
  std::optional<Millis> reconcile_in{};  ///< From now; none: from here on it is an operator's.
  /// What the last turn came to, for the evidence log. No source: nothing is appended.
  std::string source{};
  std::string evidence{};
  std::string reason{};
  StoreTime observed_at{};
};

/// The record with its stored answer, as it reads now: a completed record past its `expires_at`
/// reads as expired and without its body, a failed_retryable one past it reads as none.
struct Find {
  using Reply = std::optional<Record>;
  RecordId id;
};
/// Records without bodies, ordered by id, `limit` at most, after `after`.
struct List {
  using Reply = std::vector<Record>;
  std::optional<State> state{};
  std::optional<std::string> scope{};
  std::optional<std::string> operation{};
  std::optional<StoreTime> created_before{};
  std::optional<RecordId> after{};
  std::size_t limit = 100;
};

/// One thing that the sweeper or the reaper did; `to` is none where the record is gone.
struct LifecycleStep {
  RecordId id;
  State from;
  std::optional<State> to;
  Millis late{};         ///< For how long it had been due.
  bool damaged = false;  ///< It was due and is damaged; nothing was done, and it is due no more.
  bool operator==(const LifecycleStep&) const = default;
};
/// Ends up to `limit` expired leases and pending requests past their expiry (§3).
struct Sweep {
  using Reply = std::vector<LifecycleStep>;
  std::size_t limit = 0;
};
/// Drops up to `limit` bodies, failed records and tombstones that are due (§3), whatever they are
/// in the order in which they became due. Never in_progress, never unknown.
struct Reap {
  using Reply = std::vector<LifecycleStep>;
  std::size_t limit = 0;
};

/// One line of the append-only log of decisions about a record (§19).
struct EvidenceEntry {
  Fence fence = 0;
  std::string source;
  std::string evidence;
  std::string reason;
  State before{};
  State after{};
  bool applied = false;
  StoreTime observed_at{};
  StoreTime recorded_at{};
  bool operator==(const EvidenceEntry&) const = default;
};
/// The decisions about one record.
struct ReadEvidence {
  using Reply = std::vector<EvidenceEntry>;  ///< Oldest first.
  RecordId id;
};

/// How many records lie in each state, as they lie: one past its expiry counts as what it was until
/// the reaper comes. Kept up to date by every step, so that asking costs nothing.
struct Census {
  std::array<std::uint64_t, 7> by_state{};  ///< At the number of its state; the first is unused.
  std::optional<StoreTime> oldest_unknown{};
  std::uint64_t leases_ended = 0;  ///< By the reserves that met them, since the store was opened.
  StoreTime now{};
  bool operator==(const Census&) const = default;
};
/// Asks for a Census.
struct Count {
  using Reply = Census;
};

/// Record the table by which records are named from here on, and begin a new generation with it;
/// none when it is the recorded one. One atomic step: reserves of the generation before are refused
/// from then on. Refused (`why_not`, a sentence, and nothing changed) where a record that the store
/// holds might not be found any more: under another name, or for want of the field that carries its
/// key.
struct AdoptRoutes {
  /// Whether it was adopted.
  struct Reply {
    std::uint64_t generation = 0;  ///< The store's, then.
    std::string why_not;           ///< Empty: adopted.
    bool operator==(const Reply&) const = default;
  };
  std::vector<RouteName> routes;
  std::vector<std::string> key_fields{};  ///< Whose value is taken for a key.
};

/// Any of the verbs.
using StoreCall = std::variant<Reserve, Accept, Claim, Dispatched, Renew, Advance, Complete,
                               Release, MarkUnknown, Resolve, CacheBust, Reschedule, Find, List,
                               Sweep, Reap, ReadEvidence, Count, AdoptRoutes>;
/// What they are answered with: of each verb, its `Reply`.
using StoreReply =
    std::variant<ReserveOutcome, std::optional<Claimed>, OwnerReply, Resolve::Reply,
                 std::optional<Record>, std::vector<Record>, std::vector<LifecycleStep>,
                 std::vector<EvidenceEntry>, Census, AdoptRoutes::Reply>;
/// Or why there is none.
using StoreResult = std::expected<StoreReply, StoreError>;
/// Who hears it.
using StoreCompletion = std::move_only_function<void(StoreResult)>;

/// What decides under which name a record is found; recorded in the store (§2). While it holds
/// records, a start with other settings is refused, and so is one that lacks a secret under which
/// some of them were made.
struct IdentitySettings {
  std::string key_scope = "operation";  ///< Or "tenant".
  std::string scope_source;
  /// Newest first; empty: the store's own. The first is what new records are made under, the others
  /// are for as long as there are records of theirs. The store keeps their ids only.
  std::vector<std::array<std::uint8_t, 32>> secrets{};
};
/// What names the records of an open store.
struct Identity {
  /// At the start; AdoptRoutes may begin another.
  std::uint64_t generation = 0;
  std::array<std::uint8_t, 32> secret{};  ///< Names and fingerprints are made under it.
  /// Under which records may lie besides, newest first.
  std::vector<std::array<std::uint8_t, 32>> older{};
  /// The store's own: made at its first start, kept there and never changed, so that a scope which
  /// is a digest under it outlives every rotation.
  std::array<std::uint8_t, 32> scope_secret{};
};

/// Hears of records that changed (§7: wake-ups are events, nobody polls).
class Watcher {
 public:
  virtual ~Watcher() = default;

  /// The record `id` changed its state, its attempt or the end of its lease, or is gone: whoever
  /// cares reads it. Told once that is durable, by whatever verb and whichever node it was done;
  /// perhaps more than once, perhaps without a change, never not at all. A reader that registers
  /// its interest first and then reads misses nothing. On a thread of the store's; must not block,
  /// and may call the store.
  virtual void changed(const RecordId& id) noexcept = 0;

  /// The records of which it wants to hear now: a store that others write to as well looks at
  /// these, every so often, and tells what it finds changed. Safe from any thread; must not block.
  virtual std::vector<RecordId> awaited() = 0;
};

class Transactions;

/// Where records lie. One process may have several.
class Store {
 public:
  virtual ~Store() = default;  ///< Finishes what was asked, completing it, then closes.

  /// Asks. `done` is called exactly once, on a thread of the store's, after the outcome is durable;
  /// it must not block and must not throw. Safe from any thread; never blocks on I/O.
  virtual void call(StoreCall what, StoreCompletion done) = 0;

  /// From here on `watcher` hears of every change, for as long as the store lives. Once at most,
  /// and before the first call().
  virtual void watch(std::shared_ptr<Watcher> watcher) = 0;

  /// Of the store as it was opened; AdoptRoutes may have begun another generation since.
  virtual const Identity& identity() const noexcept = 0;

  /// Transactions of the database that the records lie in (<idem/transaction.hpp>); null where
  /// there is none that could hold business rows. The store's own: it lives as long.
  virtual Transactions* transactions() noexcept { return nullptr; }

  /// Of how many records a Sweep or Reap beside requests should be: so few that these do not feel
  /// it, and so many that asking does not cost more than the work.
  virtual std::size_t lifecycle_slice() const noexcept { return limits::lifecycle_slice; }

  /// How many calls and transactions with a waiting caller it was asked for since it was opened,
  /// so that sweeper and reaper see whether it is idle. None: others may use the same records
  /// through a store of their own, and nobody knows. Safe from any thread.
  virtual std::optional<std::uint64_t> asked() const noexcept { return std::nullopt; }
};

/// Typed form of Store::call: `done` takes `std::expected<Verb::Reply, StoreError>`.
template <class Verb, class Done>
void ask(Store& store, Verb verb, Done done) {
  using Result = std::expected<typename Verb::Reply, StoreError>;
  store.call(StoreCall(std::move(verb)), [done = std::move(done)](StoreResult result) mutable {
    if (!result) return done(Result(std::unexpected(std::move(result.error()))));
    done(Result(std::get<typename Verb::Reply>(std::move(*result))));
  });
}

}  // namespace idem::inline v0_1
