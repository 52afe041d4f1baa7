#pragma once

#include <idem/guard.hpp>

#include <exception>
#include <functional>
#include <memory>

/// @file
/// A guard for servers that must not block a thread for each request: it answers by a callback.
/// <idem/asio.hpp> is built on it, for coroutines on Asio.
namespace idem::inline v0_1 {

/// A handler's right to execute, on any thread. If the last reference goes without finish(), the
/// outcome is OutcomeUnknown. It may outlive the engine, and does nothing then.
class HandlerTurn {
 public:
  virtual ~HandlerTurn() = default;

  /// The request.
  virtual const Request& request() const noexcept = 0;
  /// As Execution::id().
  virtual const RecordId& id() const noexcept = 0;
  /// As Execution::attempt().
  virtual const Attempt& attempt() const noexcept = 0;
  /// As Execution::lease_left().
  [[nodiscard]] virtual Millis lease_left() const = 0;

  /// Receives the end of a commit().
  using CommitTaken = std::move_only_function<void(std::exception_ptr thrown, Outcome outcome)>;
  /// As Execution::commit(), on one of the engine's threads for this
  /// (limits::transaction_threads_max), which calls `done` once, after `work` is destroyed, with
  /// the work's exception if it threw. `done` must neither block nor throw.
  virtual void commit(TransactionWork work, CommitTaken done) = 0;

  /// Reports how the handler ended. Only the first call counts, of this and of threw().
  virtual void finish(Outcome outcome) = 0;
  /// Reports that an exception left the handler: unknown.
  virtual void threw() = 0;
};

/// Starts the handler's work, and returns. Called at most once per attempt, on a thread of the
/// engine's or of the store's, or on the one that calls serve(); must neither block nor throw.
using CallbackHandler = std::move_only_function<void(std::shared_ptr<HandlerTurn> turn)>;

/// Serves one operation, as Guard does, by the same rules. Safe from any thread; blocks none. May
/// be destroyed while it serves.
class CallbackGuard {
 public:
  /// As Guard's.
  CallbackGuard(Engine& engine, GuardOptions options);
  ~CallbackGuard();
  CallbackGuard(const CallbackGuard&) = delete;
  CallbackGuard& operator=(const CallbackGuard&) = delete;

  /// Receives the answer, on a thread of the engine's or of the store's, or on the one that calls
  /// serve(), perhaps before that returns. Must neither block nor throw nor end the engine.
  using ResponseTaken = std::move_only_function<void(Response)>;

  /// Calls `done` exactly once, with the client's answer. ~Engine waits for that: for the handler
  /// until its GuardOptions::run_max is over, and then its outcome is unknown.
  void serve(Request request, CallbackHandler handler, ResponseTaken done);

  /// As Guard::serve_in_transaction(); `work` runs as in HandlerTurn::commit(), and is destroyed
  /// before `done` is called.
  void serve_in_transaction(Request request, TransactionWork work, ResponseTaken done);

 private:
  std::shared_ptr<const Guard::Rules> rules_;
};

}  // namespace idem::inline v0_1
