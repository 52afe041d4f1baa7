#pragma once

#include <idem/fingerprint.hpp>
#include <idem/key.hpp>
#include <idem/limits.hpp>
#include <idem/log.hpp>
#include <idem/transaction.hpp>

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

/// @file
/// Exactly one effect for a request that is retried, in the service itself: reserve, execute,
/// settle, replay, with the machine that the gateway has (protocol.md §2–§6, §12, §15–§17).
namespace idem::inline v0_1 {

/// A request as the service's HTTP server received it.
struct Request {
  std::string method = "POST";
  std::string target = "/";  ///< Path and query, raw.
  std::vector<Field> headers{};
  std::string body{};  ///< Byte for byte as received: the fingerprint covers it.
  /// The tenant or account, as the service has authenticated it; never a client's unchecked claim.
  /// Empty: refused with 401, so that no caller can find another one's keys.
  std::string scope{};
};

/// An answer. The HTTP server adds framing, `Date` and the like.
struct [[nodiscard]] Response {
  int status = 200;
  std::vector<Field> headers{};
  std::string body{};
};

// ---- how a handler reports that its work ended ----

/// The work provably had no effect, so a retry runs it again. Only this caller gets `answer`.
struct [[nodiscard]] NotExecuted {
  Response answer{};
};
/// The work may have been done. The record stays `unknown` until evidence settles it; no retry runs
/// the work.
struct [[nodiscard]] OutcomeUnknown {
  std::string error_code = "unknown";  ///< Kept in the record, for people.
  std::string reference{};             ///< The provider's reference, if known.
};
/// Rows and answer are durable. Only Execution::commit() makes one; any other counts as unknown.
struct [[nodiscard]] Committed {
  Response answer{};   ///< As committed.
  OwnerReply reply{};  ///< The store's, to the completion.
  Attempt attempt{};
};
/// Execution::commit() failed: its rows are not there, or the connection was lost at the commit. A
/// handler that has done nothing else may turn it into NotExecuted. Returned as it is, it counts as
/// NotExecuted under GuardOptions::after_crash `rerun`, which declares the same, and as unknown
/// otherwise: the handler may have charged a card before.
struct [[nodiscard]] NotCommitted {
  Response answer{};
  /// As in TransactionEnd; for the handler's decision. A transient refusal (a deadlock, a
  /// serialization failure, a lock that was not free) came limits::transaction_tries_max times.
  std::string sqlstate{};
  std::string why{};  ///< For people; empty: nothing is known.
  /// The connection was lost at the commit: the rows may be there, and then the answer is, too.
  bool in_doubt = false;
};
/// A bare Response is stored and replayed, whatever its status (200 to 599; another one is a
/// mistake, and counts as unknown). After a failed commit() it counts as that commit()'s result, so
/// that no stored answer speaks of rows that are not there. To store such an answer, commit it: by
/// work that runs no statement and returns it.
///
/// A class of its own, so that a compiler warns of a dropped one, also behind a `co_await`.
struct [[nodiscard]] Outcome
    : std::variant<Response, NotExecuted, OutcomeUnknown, Committed, NotCommitted> {
  using variant::variant;
};

/// Writes its rows and returns the outcome: a Response commits rows and answer together; any other
/// outcome, an exception or a failed statement rolls the rows back. It must neither call guards
/// (they answer 503) or the store, nor wait for other services. It may run more than once, if the
/// database ends it in favour of another transaction; one run at most commits.
using TransactionWork = std::function<Outcome(Transaction&)>;

/// A handler's right to execute. Valid while the handler runs, on its thread.
class Execution {
 public:
  virtual ~Execution() = default;

  /// The record: the same at every attempt of a request, so that an object named after it is made
  /// once.
  virtual const RecordId& id() const noexcept = 0;
  /// This attempt, for services that check fences.
  virtual const Attempt& attempt() const noexcept = 0;
  /// The rest of the lease by this machine's monotonic clock; check it before each step that cannot
  /// be undone. 0: another attempt may execute.
  [[nodiscard]] virtual Millis lease_left() const = 0;

  /// The preferred way: commits `work`'s rows and the record's completion together. The handler
  /// returns the result, and committed work never runs again. NotCommitted: a statement failed or
  /// the attempt is stale, and nothing was written. An exception of the work leaves commit() after
  /// the rollback. Needs a store with transactions(); aborts without.
  [[nodiscard]] virtual Outcome commit(const TransactionWork& work) = 0;
};

/// Runs at most once per attempt. An exception that leaves it means `unknown`. One that leaves only
/// `commit` means that its rows are not there: catch it, and return NotExecuted if the handler has
/// done nothing else.
using Handler = std::function<Outcome(const Request&, Execution&)>;

/// The options of an engine.
struct EngineOptions {
  /// The owner of leases that records show to people: host and process.
  std::string owner{};
  LogSink log{};  ///< Null: warnings and errors go to stderr.
};

/// Shared by the guards of a process: the store, the renewal of leases, waiters, settlements that
/// are still owed, sweeper and reaper. Its functions are safe from any thread.
class Engine {
 public:
  /// `store`: not null, as it was opened, before its first call.
  explicit Engine(std::unique_ptr<Store> store, EngineOptions options = {});
  /// Blocks until no guard serves any more, and the owed settlements are written or the store
  /// cannot be reached (§4: the sweeper then ends those attempts). Destroy the guards before: one
  /// that is left answers 503; a PhasedGuard or Relay that is left aborts the process.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// For verbs that no guard has: Find, List, Resolve.
  Store& store() noexcept;
  /// The store's; null: it has none (<idem/transaction.hpp>).
  Transactions* transactions() noexcept;

  struct Parts;
  /// Internal: for guards and relays.
  Parts& parts() noexcept { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

/// The options of one guarded operation. The guard checks them when it is made.
struct GuardOptions {
  /// The operation's name, a part of each record's name: keep it while there are records.
  /// Empty: method and path.
  std::string operation{};
  /// Former names of the operation, also "METHOD /pattern" for requests that were their own
  /// operation. The guard finds records under them, so that a retry from before the change of name
  /// is still a retry; new records have the new name. Remove a name once its last record is gone.
  /// Change the name while no process serves under the old one: such a process does not look for
  /// records under the new one.
  std::vector<std::string> formerly{};
  /// Names of fields that may carry the key; two of them in one request are refused.
  std::vector<std::string> key_fields{"Idempotency-Key"};
  KeyOptions key{};               ///< What a key must look like.
  FingerprintRule fingerprint{};  ///< What must be equal in a retry; empty: all.
  /// Renewed every third of it while the handler runs, for `run_max` at most.
  Millis lease = limits::lease_default;
  /// After it the lease is no longer renewed, and the attempt ends as if its process had died.
  Millis run_max = limits::run_default;
  /// How an attempt ends whose process died: `unknown`, or `rerun`. `rerun` declares that the
  /// handler does nothing but commit(), once: without a commit nothing was done.
  LeasePolicy after_crash = LeasePolicy::unknown;
  Millis retention = limits::retention_default;  ///< How long an answer is kept.
  /// How long the key is remembered beyond that: a retry gets 410 and does not run.
  Millis tombstone = limits::tombstone_default;
  /// How long a duplicate of a running request waits for its answer; 0: 409 at once.
  Millis wait{};
  /// A larger answer is given once; a retry gets 409 `response_not_stored`.
  std::size_t response_body_bytes_max = limits::response_body_bytes_default;
};

/// Serves one operation. Safe from any thread, and blocks the caller: for servers with a thread per
/// request.
class Guard {
 public:
  /// Aborts on options under which no request could be served (a lease of 0, no key field).
  Guard(Engine& engine, GuardOptions options);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Returns the client's answer: the handler's, a replay, or a problem of Idem's (§13). A final
  /// answer is durable before it is returned.
  [[nodiscard]] Response serve(const Request& request, const Handler& handler);

  /// For a handler that touches nothing but the database: reserve, rows and completion are one
  /// commit. If the work fails or throws, nothing is written, the caller gets 500, and a retry runs
  /// it again. Needs a store with transactions(); aborts without.
  [[nodiscard]] Response serve_in_transaction(const Request& request, const TransactionWork& work);

  class Rules;

 private:
  std::unique_ptr<const Rules> rules_;
};

}  // namespace idem::inline v0_1
