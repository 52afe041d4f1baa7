#pragma once

#include <idem/guard.hpp>

#include <exception>
#include <functional>
#include <memory>

/// @file
/// A guard for servers that must not block a thread for each request: it answers by calling back.
/// Who has coroutines on Asio takes <idem/asio.hpp>, which stands on this.
namespace idem::inline v0_1 {

/// The right to execute that a handler was given, on whatever thread it goes on. Its last reference
/// gone without finish() counts as OutcomeUnknown: nobody knows how far it came. It may outlive the
/// engine, and does nothing then.
class HandlerTurn {
 public:
  virtual ~HandlerTurn() = default;

  /// What was asked.
  virtual const Request& request() const noexcept = 0;
  /// As Execution::id().
  virtual const RecordId& id() const noexcept = 0;
  /// As Execution::attempt().
  virtual const Attempt& attempt() const noexcept = 0;
  /// As Execution::lease_left().
  virtual Millis lease_left() const = 0;

  /// Who hears how a commit() ended.
  using CommitTaken = std::move_only_function<void(std::exception_ptr thrown, Outcome outcome)>;
  /// As Execution::commit(), on one of the engine's threads for this
  /// (limits::transaction_threads_max). `done` is called there, once, after `work` is gone; with
  /// what the work threw, where it did. It must not block nor throw.
  virtual void commit(TransactionWork work, CommitTaken done) = 0;

  /// How the handler ended. Only the first word counts, of this and of threw().
  virtual void finish(Outcome outcome) = 0;
  /// An exception left it: unknown.
  virtual void threw() = 0;
};

/// Begins what the handler has to do, and returns; at most once per attempt. On a thread of the
/// engine's or of the store's, or on the one that calls serve(): it must not block nor throw.
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

  /// On a thread of the engine's or of the store's, or on the one that calls serve(), perhaps
  /// before that returns. It must neither block nor throw nor end the engine.
  using ResponseTaken = std::move_only_function<void(Response)>;

  /// `done` is called exactly once, with what the client is to hear. ~Engine waits for that: for
  /// the handler until its GuardOptions::run_max is over, when it is told as unknown.
  void serve(Request request, CallbackHandler handler, ResponseTaken done);

  /// As Guard::serve_in_transaction(); `work` runs as in HandlerTurn::commit(), and is gone before
  /// `done` is called.
  void serve_in_transaction(Request request, TransactionWork work, ResponseTaken done);

 private:
  std::shared_ptr<const Guard::Rules> rules_;
};

}  // namespace idem::inline v0_1
