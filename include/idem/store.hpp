#pragma once

#include <idem/evidence.hpp>
#include <idem/identity.hpp>
#include <idem/journal.hpp>
#include <idem/outcomes.hpp>
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
/// The store port: the protocol's verbs (protocol.md §3–§5) as values, answered by completion.
/// tests/store_conformance defines what a store must do; every store passes it by URL.
namespace idem::inline v0_1 {

// ---- the verbs ----

/// Another name under which a record of the same request may lie.
struct OtherName {
  RecordId id;
  /// Such a record's fingerprints, under the secret that made `id`; empty: those of the reserve.
  std::vector<Fingerprint> fingerprints{};
};

/// What a scope may use, over all its gateways. The store checks it only if a reserve would make a
/// new record, and counts only records that were made with a quota. A zero sets no limit.
struct Quota {
  /// Mean time between two new keys.
  std::chrono::microseconds new_key_interval{};
  /// New keys that may come at once. At least 1.
  std::uint32_t new_keys_at_once = 1;
  /// Keys with records that have not expired, in any state.
  std::uint64_t active_keys = 0;
  /// `limits::record_charge` for each of them, plus its stored request and an answer above
  /// `limits::small_answer_bytes_max`; `limits::tombstone_charge` for each expired one.
  std::uint64_t stored_bytes = 0;
  bool operator==(const Quota&) const = default;
};

/// Less than any record needs: a reserve with it makes no record; only an existing one answers it.
inline constexpr Quota no_room{.stored_bytes = 1};

/// Asks for the right to execute (§5). One atomic step; durable before the reply. A repeat with the
/// same token gives the same attempt while that still runs. It sweeps an expired lease on the way.
struct Reserve {
  using Reply = ReserveOutcome;
  RecordId id;
  /// The record's names under older secrets and former names. If several records match, the one
  /// with the same fingerprint counts, then the first in order.
  std::vector<OtherName> also;
  std::string scope;
  std::string operation;
  /// One per live version. The store keeps the first, and judges misuse by it.
  std::vector<Fingerprint> fingerprints;
  Token token;
  std::string owner;
  Millis lease{};
  LeasePolicy lease_policy = LeasePolicy::unknown;
  bool dispatched = true;  ///< §11: marked with the reserve; false when a separate mark follows.
  Millis retention{};
  Millis tombstone{};            ///< 0: the key may run again after its expiry.
  std::optional<Quota> quota{};  ///< None: the record counts for no quota.
  /// Stored with the granted attempt: Record::provider and Record::sealed_key.
  std::string provider{};
  std::string sealed_key{};
  std::uint64_t generation = 0;  ///< Must be the store's; otherwise `refused`.
};

/// Stores an asynchronous request as pending (§3, §7). The reply is Pending if this call or an
/// earlier one stored the request, otherwise the outcome that a reserve would have.
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
/// Claims the pending request that has been due the longest, under a new attempt. None: nothing is
/// due.
struct Claim {
  using Reply = std::optional<Claimed>;
  Token token;
  std::string owner;
  Millis lease{};
  bool dispatched = true;
};

/// Marks that the first byte may leave now (§11). Applied only while the lease holds.
struct Dispatched {
  using Reply = OwnerReply;
  RecordId id;
  AttemptRef attempt;
};
/// Extends the lease to `lease` from now. Stale once the lease is over.
struct Renew {
  using Reply = OwnerReply;
  RecordId id;
  AttemptRef attempt;
  Millis lease{};
};
/// Records that a phase committed (§16).
struct Advance {
  using Reply = OwnerReply;
  RecordId id;
  AttemptRef attempt;
  std::string recovery_point;
};
/// Ends the attempt with an answer. Also applies to failed_retryable, pending and unknown, for the
/// attempt that led there: the owner's own late answer is the best evidence (§3).
struct Complete {
  using Reply = OwnerReply;
  RecordId id;
  AttemptRef attempt;
  StoredResponse response;
  std::string upstream_reference;
};
/// Ends the attempt as not executed. With a stored request the record becomes pending again, and is
/// due after `retry_in`.
struct Release {
  using Reply = OwnerReply;
  RecordId id;
  AttemptRef attempt;
  ReleaseBasis basis = ReleaseBasis::proven;
  std::string error_code;
  Millis retry_in{};
};
/// Ends the attempt with an unknown outcome.
struct MarkUnknown {
  using Reply = OwnerReply;
  RecordId id;
  AttemptRef attempt;
  std::string error_code;
  std::optional<Millis> reconcile_in;
  std::string upstream_reference;
};

/// Settles an unknown record by evidence, or ends a pending or failed_retryable one by positive
/// evidence (§3, §19). The store appends the evidence to its log in every case, also when refused.
///
/// Negative evidence proves nothing while the attempt could still send. The store accepts it only
/// if it was observed later than the end of the attempt's lease plus `grace`, by the store's clock,
/// and not in the future.
///
/// The store does not apply positive evidence about a running attempt, about one with a stored 5xx,
/// without an answer, or without a fence. Such evidence contests the record: its attempt is not
/// released, and neither later negative evidence nor a later refusal by the provider settles it
/// (by_evidence). A record that would run again, failed_retryable or pending behind an attempt,
/// becomes unknown.
struct Resolve {
  /// What the evidence says: executed, or not executed.
  enum class As : std::uint8_t { completed, failed_retryable };
  /// What the store did with it.
  enum class Verdict : std::uint8_t {
    done,
    not_found,
    wrong_state,
    wrong_fence,
    missing_response,
    too_early,
    by_evidence,  ///< Evidence made or contests the stored state, which therefore stays.
    superseded,   ///< Of a Reschedule: another asker has changed the plan since it was read.
  };
  /// The verdict, and the record's state now.
  struct Reply {
    Verdict verdict = Verdict::not_found;
    std::optional<State> state;
    bool is_contradicted = false;  ///< As in OwnerReply.
    bool operator==(const Reply&) const = default;
  };
  RecordId id;
  As as = As::completed;
  std::optional<Fence> fence{};            ///< The attempt of the evidence, if it names one.
  std::optional<StoredResponse> response;  ///< Needed for `completed`.
  std::string source;
  std::string evidence;
  std::string reason;
  StoreTime observed_at{};
  Millis grace{};  ///< How long the source may take to show what was executed.
  /// Of `completed`: the provider refused the work. This neither completes a contested record nor
  /// contests one.
  bool denies = false;
};
/// An operator's cache-bust: a completed record with a stored 5xx becomes failed_retryable. The
/// store refuses it (by_evidence) for a contested record, and for one that a Resolve completed:
/// evidence says that its work ran, whatever the answer's status.
struct CacheBust {
  using Reply = Resolve::Reply;
  RecordId id;
  /// The attempt whose answer it is: a decision about one attempt frees no other.
  std::optional<Fence> fence{};
  std::string reason;
  std::string source = "operator";  ///< Who decided it.
};

/// Plans the next question about an unknown record (§19). Of several askers that read the same plan
/// one succeeds, so that each turn has one asker; if that one crashes, the record becomes due
/// again. The evidence stays as it is.
struct Reschedule {
  using Reply = Resolve::Reply;
  RecordId id;
  std::optional<Fence> fence{};          ///< The attempt of the question.
  std::uint32_t attempts = 0;            ///< As the asker read it; the store adds one.
  std::optional<Millis> reconcile_in{};  ///< From now; none: an operator has to decide.
  /// The last turn's result, for the evidence log. Empty source: nothing is appended.
  std::string source{};
  std::string evidence{};
  std::string reason{};
  StoreTime observed_at{};
};

/// Puts another form of the same answer or request in place of the stored one: encrypted, or with
/// its key wrapped by another one. State, times and charge stay. The verdicts: done, not_found,
/// wrong_state (there is no such part, or the request runs), wrong_fence, superseded (what is
/// stored is no longer what the caller read).
struct Reseal {
  using Reply = Resolve::Reply;
  RecordId id;
  std::optional<Fence> fence{};  ///< Of an answer: its attempt.
  /// Of what the caller read: of a request its SHA-256; of an answer that of its head, as it is
  /// stored, behind the head's length (64 bits, little-endian), and of its body.
  std::array<std::uint8_t, 32> seen{};
  std::optional<StoredResponse> response;  ///< Of the same status; or
  std::optional<std::string> request;      ///< of a pending or unknown record.
};

/// Reads the record with its stored answer. A completed record past its `expires_at` reads as
/// expired and without its body, a failed_retryable one past it reads as none.
struct Find {
  using Reply = std::optional<Record>;
  RecordId id;
};
/// Reads records without bodies, ordered by id, after `after`, `limit` at most.
struct List {
  using Reply = std::vector<Record>;
  std::optional<State> state{};
  std::optional<std::string> scope{};
  std::optional<std::string> operation{};
  std::optional<StoreTime> created_before{};
  std::optional<RecordId> after{};
  std::size_t limit = 100;
  /// Also a record that cannot be read, with its id and without a state. Not where `state` is set.
  bool damaged = false;
};

/// One step of the sweeper or the reaper; `to` is none if the record is gone.
struct LifecycleStep {
  RecordId id;
  State from;
  std::optional<State> to;
  Millis late{};         ///< How long it had been due.
  bool damaged = false;  ///< It was due and is damaged: no step was made, and it is due no more.
  bool operator==(const LifecycleStep&) const = default;
};
/// Ends up to `limit` expired leases and pending requests past their expiry (§3).
struct Sweep {
  using Reply = std::vector<LifecycleStep>;
  std::size_t limit = 0;
};
/// Drops up to `limit` bodies, failed records and tombstones that are due (§3), of all kinds in the
/// order in which they became due; in a store of several shards each shard does so, if the limit is
/// no less than their number. Leaves in_progress and unknown alone.
struct Reap {
  using Reply = std::vector<LifecycleStep>;
  std::size_t limit = 0;
};

/// The number of records in each stored state: a record past its expiry counts in its old state
/// until the reaper comes. Every step keeps the counts, so that reading them costs nothing.
struct Census {
  std::array<std::uint64_t, 7> by_state{};  ///< Indexed by State; the first is unused.
  std::optional<StoreTime> oldest_unknown{};
  std::uint64_t leases_ended = 0;  ///< By reserves that met an expired lease, since the opening.
  StoreTime now{};
  bool operator==(const Census&) const = default;
};
/// Asks for a Census.
struct Count {
  using Reply = Census;
};

/// Records the table that names records from now on, and begins a new generation with it, unless it
/// is the recorded one. One atomic step: afterwards the store refuses reserves of the one before.
/// Refused (a sentence in `why_not`, nothing changed) if a stored record might not be found any
/// more: because its name changes, or without the field that carries its key.
struct AdoptRoutes {
  /// Whether the store adopted the table.
  struct Reply {
    std::uint64_t generation = 0;  ///< The store's, afterwards.
    std::string why_not;           ///< Empty: adopted.
    bool operator==(const Reply&) const = default;
  };
  std::vector<RouteName> routes;
  std::vector<std::string> key_fields{};  ///< Header fields that may carry the key.
};

/// Makes the record what Find says that it is in another store: for a store that is becoming its
/// copy, which nobody else uses until it is whole. No attempt begins.
struct PutRecord {
  /// Whether it was put.
  struct Reply {
    bool put = false;            ///< False: `behind` or `ends` does not hold; nothing was changed.
    std::uint64_t evidence = 0;  ///< Lines about the record in the log, after this call.
    bool operator==(const Reply&) const = default;
  };
  RecordId id;
  std::optional<Record> record{};  ///< None: there is none of this id afterwards.
  /// Lines about it that its log has, and those to be appended behind them.
  std::uint64_t behind = 0;
  std::vector<EvidenceEntry> evidence{};
  Fence fence_floor = 0;         ///< The store grants no fence up to this one from now on.
  std::uint64_t generation = 0;  ///< Must be the store's; otherwise `refused`.
  /// Put only if an attempt under this token runs, and all else of it is as `record` has it.
  std::optional<Token> ends{};
};

using AnyVerb =
    std::variant<Reserve, Accept, Claim, Dispatched, Renew, Advance, Complete, Release, MarkUnknown,
                 Resolve, CacheBust, Reschedule, Reseal, Find, List, Sweep, Reap, ReadEvidence,
                 Count, AdoptRoutes, AppendLine, ReadLines, ListJournals, DropJournal, PutRecord>;
using AnyReply = std::variant<ReserveOutcome, std::optional<Claimed>, OwnerReply, Resolve::Reply,
                              std::optional<Record>, std::vector<Record>,
                              std::vector<LifecycleStep>, std::vector<EvidenceEntry>, Census,
                              AdoptRoutes::Reply, AppendLine::Reply, ReadLines::Reply,
                              std::vector<JournalSummary>, DropJournal::Reply, PutRecord::Reply>;

/// Any of the verbs. A class of its own, as is StoreReply, so that copying, moving and destroying
/// all of them is compiled once and not in each file that has one.
class StoreCall : public AnyVerb {
 public:
  using AnyVerb::AnyVerb;
  StoreCall(const StoreCall&);
  StoreCall(StoreCall&&) noexcept;
  StoreCall& operator=(const StoreCall&);
  StoreCall& operator=(StoreCall&&) noexcept;
  ~StoreCall();
};
/// The reply to any verb: its `Reply`.
class StoreReply : public AnyReply {
 public:
  using AnyReply::AnyReply;
  StoreReply(const StoreReply&);
  StoreReply(StoreReply&&) noexcept;
  StoreReply& operator=(const StoreReply&);
  StoreReply& operator=(StoreReply&&) noexcept;
  ~StoreReply();
};
/// The reply, or why there is none.
using StoreResult = std::expected<StoreReply, StoreError>;
/// Receives the result.
using StoreCompletion = std::move_only_function<void(StoreResult)>;

/// Receives notice of changed records (§7: wake-ups are events; waiters do not poll).
class Watcher {
 public:
  virtual ~Watcher() = default;

  /// The record `id` changed its state, its attempt or its lease's end, or is gone. The store
  /// notifies of every change once it is durable, whichever verb and node made it; perhaps twice,
  /// perhaps without a change. A reader that registers first and then reads misses nothing. Called
  /// on a thread of the store's; must not block, and may call the store.
  virtual void changed(const RecordId& id) noexcept = 0;

  /// The records that the watcher waits for now. A store that other processes also write to reads
  /// these at intervals, and notifies of changes. Must not block, and must be safe from any thread.
  virtual std::vector<RecordId> awaited() = 0;
};

class Transactions;

/// Holds records. One process may have several stores.
class Store {
 public:
  virtual ~Store() = default;  ///< Completes all calls, then closes.

  /// Asks. The store calls `done` exactly once, on a thread of its own, after the outcome is
  /// durable; `done` must neither block nor throw. Safe from any thread; never blocks on I/O.
  virtual void call(StoreCall what, StoreCompletion done) = 0;

  /// From now on notifies `watcher` of every change, while the store lives. Call it at most once,
  /// and before the first call().
  virtual void watch(std::shared_ptr<Watcher> watcher) = 0;

  /// As the store was opened; AdoptRoutes may have begun another generation since.
  virtual const Identity& identity() const noexcept = 0;

  /// Of the records' database (<idem/transaction.hpp>); the store owns it. Null: there are none.
  virtual Transactions* transactions() noexcept { return nullptr; }

  /// The limit for a Sweep or Reap beside requests: small enough not to delay them, large enough
  /// that the call does not cost more than its work.
  virtual std::size_t lifecycle_slice() const noexcept { return limits::lifecycle_slice; }

  /// Calls and transactions with a waiting caller since the opening, so that sweeper and reaper see
  /// whether the store is idle. None: other processes may use the records. Safe from any thread.
  virtual std::optional<std::uint64_t> asked() const noexcept { return std::nullopt; }
};

/// Typed form of Store::call: `done` receives `std::expected<Verb::Reply, StoreError>`.
template <class Verb, class Done>
void ask(Store& store, Verb verb, Done done) {
  using Result = std::expected<typename Verb::Reply, StoreError>;
  store.call(StoreCall(std::move(verb)), [done = std::move(done)](StoreResult result) mutable {
    if (!result) return done(Result(std::unexpected(std::move(result.error()))));
    done(Result(std::get<typename Verb::Reply>(std::move(*result))));
  });
}

}  // namespace idem::inline v0_1
