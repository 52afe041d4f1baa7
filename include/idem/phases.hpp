#pragma once

#include <idem/foreign_call.hpp>
#include <idem/guard.hpp>
#include <idem/worker_limits.hpp>

/// @file
/// Work that cannot be one transaction because it calls somebody outside: named phases, each a call
/// (with no transaction open) and then one transaction, with a recovery point after each
/// (protocol.md §16; Brandur Leach, "Implementing Stripe-like Idempotency Keys in Postgres", 2017).
namespace idem::inline v0_1 {

/// What a call is told.
struct PhaseCall {
  const Request& request;  ///< What is kept of it (PhasedOptions::keep_fields).
  const RecordId& id;      ///< The record: the same at every attempt.
  std::string key;   ///< derived_key() of this phase: send it as the other side's idempotency key.
  Millis timeout{};  ///< Must be over by then, whatever happens.
};

/// A call to the outside that a phase begins with.
struct ForeignCall {
  /// Makes it, once. Blocks for `timeout` at most. What the other side refuses for good (a card is
  /// declined) is CallAnswered too: the phase's transaction writes it down.
  std::function<CallEnd(const PhaseCall&)> send{};
  Repetition<PhaseCall> repetition{};  ///< What a repeated call can rely on.
  /// The lease must cover it twice.
  Millis timeout = limits::call_timeout_default;
};

/// What a phase's transaction is told.
struct PhaseRun {
  const Request& request;  ///< As PhaseCall has it.
  const RecordId& id;
  const CallAnswered& called;  ///< Empty in a phase without a call.
};
/// The phase is committed, and the next one follows.
struct NextPhase {};
/// A Response ends the work here, whatever phases follow: it is committed with the rows, stored and
/// replayed.
using PhaseEnd = std::variant<NextPhase, Response>;

/// One step of the work: a call, if there is one, then a transaction.
struct Phase {
  /// Of the recovery point and of the derived key; 1 to 64 bytes. Records remember it: where
  /// another phase has its place by now and its call may have been made, the request ends as
  /// `unknown`, and one whose last phase is gone does as well.
  std::string name{};
  ForeignCall call{};  ///< None where `send` is null.
  /// Its rows, in one transaction with the recovery point. May run more than once, but only one
  /// commits. As TransactionWork: it asks neither guards nor anybody outside. Throwing, or a failed
  /// statement, rolls it back; the phase is tried again by another attempt.
  std::function<PhaseEnd(const PhaseRun&, Transaction&)> work{};
};

/// How one operation is guarded that runs in phases.
struct PhasedOptions {
  /// As of any guard. `operation` is needed; `after_crash` is always `resume`.
  GuardOptions guard{};
  /// Fields of a request that the phases see, in every attempt those of the first. Kept in the
  /// store while the work is unfinished, with method, target, body and scope, so that it goes on
  /// without its client: never credentials.
  std::vector<std::string> keep_fields{"Content-Type"};
  /// How often this process looks for work whose attempt died; 0: never, others do.
  Millis complete_interval = limits::complete_interval_default;
  /// After so many attempts the record becomes `unknown`, and a person has to look.
  int attempts_max = limits::flow_attempts_max;
};

/// Serves one operation in phases. A phase that committed is never run again. Where an attempt
/// dies, the next one, by a retry or by a completer, goes on after the last phase that committed;
/// a call that may have been made by then is repeated only as its Repetition allows, looked up
/// where that is declared, and ends as `unknown` otherwise. Safe from any thread, and blocks the
/// one that calls.
class PhasedGuard {
 public:
  /// Starts to complete what was left unfinished; must be gone before the engine. Needs a store
  /// with transactions(); aborts without, on no phases, on a name that is empty, too long or there
  /// twice, on a phase without work, and on a lease that does not cover each call twice, after it
  /// has said which phase it is and what to write instead.
  PhasedGuard(Engine& engine, PhasedOptions options, std::vector<Phase> phases);
  /// Waits for the attempt that it may be completing.
  ~PhasedGuard();
  PhasedGuard(const PhasedGuard&) = delete;
  PhasedGuard& operator=(const PhasedGuard&) = delete;

  /// As Guard::serve. 409 `in_progress`: an attempt ended without an end, and another takes it up.
  [[nodiscard]] Response serve(const Request& request);

  /// One turn of the completer, on this thread. How much it went on with.
  std::size_t complete_due();

 private:
  class Flows;
  std::unique_ptr<Flows> flows_;
};

}  // namespace idem::inline v0_1
