#pragma once

#include <idem/foreign_call.hpp>
#include <idem/guard.hpp>
#include <idem/worker_limits.hpp>

/// @file
/// Work that cannot be one transaction because it calls other services: named phases, each a call
/// (with no transaction open) and then one transaction, with a recovery point after each
/// (protocol.md §16; Brandur Leach, "Implementing Stripe-like Idempotency Keys in Postgres", 2017).
namespace idem::inline v0_1 {

/// The input of a call.
struct PhaseCall {
  const Request& request;  ///< With the fields of PhasedOptions::keep_fields only.
  const RecordId& id;      ///< The record: the same at every attempt.
  std::string key;   ///< derived_key() of this phase: send it as the other side's idempotency key.
  Millis timeout{};  ///< The call must end within it, in any case.
};

/// A call to another service, with which a phase begins.
struct ForeignCall {
  /// Makes the call, once. Blocks for `timeout` at most. A final refusal (a card is declined) is
  /// CallAnswered too: the phase's transaction records it.
  std::function<CallEnd(const PhaseCall&)> send{};
  Repetition<PhaseCall> repetition{};  ///< What a repeated call can rely on.
  /// The lease must cover it twice.
  Millis timeout = limits::call_timeout_default;
};

/// The input of a phase's transaction.
struct PhaseRun {
  const Request& request;  ///< As in PhaseCall.
  const RecordId& id;
  const CallAnswered& called;  ///< Empty in a phase without a call.
};
/// Commits the phase; the next one follows.
struct NextPhase {};
/// A Response ends the work here, also before the last phase: it commits with the rows, and is
/// stored and replayed.
using PhaseEnd = std::variant<NextPhase, Response>;

/// One step of the work: a call, if there is one, then a transaction.
struct Phase {
  /// Part of the recovery point and of the derived key; 1 to 64 bytes. Records keep it. A request
  /// ends as `unknown` if its last committed phase no longer exists, or if another phase is in the
  /// place of one whose call may have been made.
  std::string name{};
  ForeignCall call{};  ///< None where `send` is null.
  /// Writes its rows, in one transaction with the recovery point. May run more than once; one run
  /// at most commits. As TransactionWork, it calls neither guards nor other services. An exception
  /// or a failed statement rolls it back, and another attempt tries the phase again.
  std::function<PhaseEnd(const PhaseRun&, Transaction&)> work{};
};

/// The options of one operation in phases.
struct PhasedOptions {
  /// As of any guard. `operation` is needed; `after_crash` is always `resume`.
  GuardOptions guard{};
  /// Header fields that the phases see; every attempt sees those of the first. The store keeps them
  /// while the work is unfinished, with method, target, body and scope, so that the work goes on
  /// without its client. Never name credentials here.
  std::vector<std::string> keep_fields{"Content-Type"};
  /// How often this process looks for work whose attempt died; 0: never, other processes do.
  Millis complete_interval = limits::complete_interval_default;
  /// After so many attempts the record becomes `unknown`, and a person has to look.
  int attempts_max = limits::flow_attempts_max;
};

/// Serves one operation in phases. A committed phase never runs again. If an attempt dies, the next
/// one, by a retry or by the completer, goes on after the last committed phase. It repeats or looks
/// up a call that may have been made only as the call's Repetition allows, and otherwise ends as
/// `unknown`. Safe from any thread, and blocks the caller.
class PhasedGuard {
 public:
  /// Starts the completer of unfinished work. Destroy the guard before the engine. Needs a store
  /// with transactions(). Without it, without phases, on a name that is empty, too long or
  /// repeated, on a phase without work, and on a lease that does not cover each call twice, it
  /// prints the phase and what to write instead, and aborts.
  PhasedGuard(Engine& engine, PhasedOptions options, std::vector<Phase> phases);
  /// Waits for an attempt that the completer is running.
  ~PhasedGuard();
  PhasedGuard(const PhasedGuard&) = delete;
  PhasedGuard& operator=(const PhasedGuard&) = delete;

  /// As Guard::serve. 409 `in_progress`: an attempt stopped unfinished, and another will go on.
  [[nodiscard]] Response serve(const Request& request);

  /// Runs one turn of the completer on this thread. Returns the number of requests it continued.
  std::size_t complete_due();

 private:
  class Flows;
  std::unique_ptr<Flows> flows_;
};

}  // namespace idem::inline v0_1
