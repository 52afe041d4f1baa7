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

/// What was asked, as the service's HTTP server received it.
struct Request {
  std::string method = "POST";
  std::string target = "/";  ///< Path and query, raw.
  std::vector<Field> headers{};
  std::string body{};  ///< As it came, byte for byte: it tells one request from another.
  /// Who asks, as the service has established it: a tenant, an account. Never a client's bare word.
  /// Empty: refused with 401, because nobody's keys are to be found by somebody else.
  std::string scope{};
};

/// What is answered; framing, `Date` and the like are the HTTP server's.
struct Response {
  int status = 200;
  std::vector<Field> headers{};
  std::string body{};
};

// ---- how a handler says that its work ended ----

/// Proven: nothing of it is there, so a retry runs it again. `answer` is for this caller alone.
struct NotExecuted {
  Response answer{};
};
/// It may have been done. The record stays `unknown` until evidence settles it; no retry runs it.
struct OutcomeUnknown {
  std::string error_code = "unknown";  ///< Kept in the record, for people.
  std::string reference{};             ///< What the provider calls it, where that is known.
};
/// Rows and answer are durable. Only Execution::commit() says so; from anywhere else it counts as
/// unknown.
struct Committed {
  Response answer{};   ///< As it was committed.
  OwnerReply reply{};  ///< Of the store to the completion.
  Attempt attempt{};
};
/// What Execution::commit() says besides: its rows are not there, or were lost to sight with the
/// connection. A handler that has done nothing else may turn it into NotExecuted. As it is it
/// counts as that under GuardOptions::after_crash `rerun`, which declares the same, and as unknown
/// otherwise: a charge may lie before it.
struct NotCommitted {
  Response answer{};
  /// As TransactionEnd has it: by what number and words the database refused, for the handler to
  /// decide by. What passes by itself (a deadlock, a serialization failure, a lock that was not
  /// free) was tried limits::transaction_tries_max times by then.
  std::string sqlstate{};
  std::string why{};  ///< For people; empty: nothing is known.
  /// The connection was lost at the commit: the rows may be there, and then the answer is, too.
  bool in_doubt = false;
};
/// A bare Response is stored and replayed, whatever its status (200 to 599; another one is a
/// mistake, and counts as unknown). Not so behind a commit() that failed: there it counts as what
/// that commit() said, so that no answer speaks of rows that are not there. A handler that wants
/// such an answer stored commits it: work that has no statement and returns it.
using Outcome = std::variant<Response, NotExecuted, OutcomeUnknown, Committed, NotCommitted>;

/// Does its rows and says how it ended: a Response commits rows and answer together; any other
/// outcome, an exception or a failed statement rolls the rows back. It must ask neither guards nor
/// the store for anything (a guard answers 503), nor wait for anybody outside. It may run more than
/// once, where the database ended it in favour of another transaction; one run at most commits.
using TransactionWork = std::function<Outcome(Transaction&)>;

/// The right to execute that a handler was given. Lives as long as the handler runs, on its thread.
class Execution {
 public:
  virtual ~Execution() = default;

  /// The record: the same at every attempt of a request, so that what is named after it is made
  /// once.
  virtual const RecordId& id() const noexcept = 0;
  /// This grant of the right to execute, for who takes fences.
  virtual const Attempt& attempt() const noexcept = 0;
  /// What of the lease is left by this machine's monotonic clock; ask before anything that cannot
  /// be taken back. 0: somebody else may execute.
  [[nodiscard]] virtual Millis lease_left() const = 0;

  /// The golden path: `work`'s rows and the completion of the record in one commit. The handler
  /// returns what this returns, and nothing that was committed is ever done again. A statement that
  /// fails, or an attempt that is stale by now, leaves nothing behind: NotCommitted. What the work
  /// throws comes out of here, rolled back. Needs a store with transactions(); aborts without.
  [[nodiscard]] virtual Outcome commit(const TransactionWork& work) = 0;
};

/// Runs at most once per attempt. An exception that leaves it means `unknown`: nobody knows how far
/// it came. One that leaves `commit` alone means that its rows are not there; catch it, and answer
/// NotExecuted, where nothing else was done.
using Handler = std::function<Outcome(const Request&, Execution&)>;

/// What an engine is made with.
struct EngineOptions {
  /// Who has a lease, for people that read records: host and process.
  std::string owner{};
  LogSink log{};  ///< Null: warnings and errors go to stderr.
};

/// What the guards of a process share: the store, the renewal of leases, those who wait, the
/// settling that is still owed, sweeper and reaper.
class Engine {
 public:
  /// `store`: as it was opened, and not null; nothing was asked of it yet.
  explicit Engine(std::unique_ptr<Store> store, EngineOptions options = {});
  /// Blocks until no guard serves any more and what is owed to the store was settled or could not
  /// be reached (§4: that much is then left to the sweeper). Guards should be gone by then: one
  /// that is asked after that answers 503; a PhasedGuard or Relay at work would go on, and aborts.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// For verbs that no guard has: Find, List, Resolve.
  Store& store() noexcept;
  /// Of the store; null: it has none (<idem/transaction.hpp>).
  Transactions* transactions() noexcept;

  struct Parts;
  /// For guards and relays.
  Parts& parts() noexcept { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

/// How one operation is guarded. Checked when the guard is made.
struct GuardOptions {
  /// The operation's name, a part of each record's name: keep it for as long as there are records.
  /// Empty: method and path.
  std::string operation{};
  /// Names that the operation had before. Records under them are found, so that a retry of a
  /// request from before the change of name is still a retry; new ones have the new name. A name
  /// may go once its last record is over. Also "METHOD /pattern", for requests that were their own
  /// operation. Change a name while no process serves the old one: that one does not look for
  /// records under the new name.
  std::vector<std::string> formerly{};
  /// Names of fields that may carry the key; two of them in one request are refused.
  std::vector<std::string> key_fields{"Idempotency-Key"};
  KeyOptions key{};               ///< What a key must look like.
  FingerprintRule fingerprint{};  ///< What of a request must be the same in a retry; empty: all.
  /// Renewed at a third of it for as long as the handler runs, and `run_max` at most.
  Millis lease = limits::lease_default;
  /// A handler that runs for longer has its lease renewed no more, and is then as good as dead.
  Millis run_max = limits::run_default;
  /// What becomes of an execution whose process died: `unknown`, or `rerun`. `rerun` declares that
  /// the handler does nothing but commit(), once: what did not commit is not there.
  LeasePolicy after_crash = LeasePolicy::unknown;
  Millis retention = limits::retention_default;  ///< How long an answer is kept.
  /// How long the key is remembered beyond that: a retry hears 410 and does not run.
  Millis tombstone = limits::tombstone_default;
  /// How long a duplicate of a running request is kept waiting for its answer; 0: 409 at once.
  Millis wait{};
  /// A larger answer is given once; a retry hears 409 `response_not_stored`.
  std::size_t response_body_bytes_max = limits::response_body_bytes_default;
};

/// Serves one operation. Safe from any thread, and blocks the one that calls: for servers with a
/// thread per request.
class Guard {
 public:
  /// Aborts on options that no request could be served under (a lease of nothing, no key field).
  Guard(Engine& engine, GuardOptions options);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// What the client is to hear: the handler's answer, a replay, or a problem of ours (§13). Never
  /// something final that is not durable.
  [[nodiscard]] Response serve(const Request& request, const Handler& handler);

  /// For a handler that touches nothing but the database: reserve, rows and completion are one
  /// commit. Where the work fails or throws nothing is there, the caller hears 500, and a retry
  /// runs it again. Needs a store with transactions(); aborts without.
  [[nodiscard]] Response serve_in_transaction(const Request& request, const TransactionWork& work);

  class Rules;

 private:
  std::unique_ptr<const Rules> rules_;
};

}  // namespace idem::inline v0_1
