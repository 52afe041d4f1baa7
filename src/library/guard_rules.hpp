#pragma once

#include "core/naming/former_names.hpp"
#include "core/threads/no_waiting.hpp"
#include "library/engine.hpp"

#include <idem/guard.hpp>

#include <expected>

namespace idem {
namespace library {

inline constexpr std::string_view use_the_transaction =
    "a wait for the store in a transaction's work would be a wait for itself: use the Transaction "
    "that the work was given, and ask the store before or after it";

/// While it lives, this thread runs a transaction's work, where a call to a guard or to the store
/// would wait for itself.
class InWork {
 public:
  InWork();
  ~InWork();
  InWork(const InWork&) = delete;
  InWork& operator=(const InWork&) = delete;

  static bool is_now() noexcept;

 private:
  NoWaiting no_waiting_;
};

/// Drops Idem's own fields and fields that would break the framing.
WireAnswer to_answer(Response response);
/// The client's answer.
Response to_response(WireAnswer answer);
/// Why an answer cannot be stored: a sentence; empty: it can.
std::string what_is_wrong(const Response& response);
/// 500: nothing was written.
Response work_failed(const RecordId& id);
/// 503: nothing was begun.
Response store_unavailable();

/// Aborts if `options` ask for `resume`, which only a PhasedGuard can do.
void refuse_resume(std::string_view whose, const GuardOptions& options);

/// The end of a request: the client's answer, with a body that the store does not keep.
class Ending {
 public:
  /// Takes a body that is too large for the store out of the event, and keeps it for the client.
  void keep_large_body(ExchangeEvent& event);
  /// None: the request goes on.
  std::optional<Response> answer_of(ExchangeAction& action);

 private:
  std::string large_body_;
};

}  // namespace library

/// One guarded operation: its options, and the driving of its requests.
class Guard::Rules {
 public:
  /// `whose` names the guard in messages about mistakes. Aborts on options under which no request
  /// could be served.
  Rules(std::string_view whose, Engine& engine, GuardOptions options);

  Response serve(const Request& request, const Handler& handler) const;
  Response serve_in_transaction(const Request& request, const TransactionWork& work) const;

  /// The reserve of a request, or the client's answer if there is none. Does not call the store.
  std::expected<Reserve, Response> reserve_of(const Request& request) const;
  std::shared_ptr<library::Serving> make_serving(const Request& request, Reserve reserve,
                                                 Millis wait_max) const;
  /// `wait_max`: how long the request may wait for another attempt.
  ExchangeSettings settings_of(const Request& request, Millis wait_max) const;

  /// Asks a reserve instead of the store, to commit more with it. Blocks.
  using AskReserve = std::function<StoreResult(const Reserve&)>;

  /// Carries out actions until there is an answer; `turn` runs the handler and returns its end.
  Response drive(const std::shared_ptr<library::Serving>& serving, ExchangeAction action,
                 const std::function<ExchangeEvent(const Send&)>& turn,
                 const AskReserve& ask_reserve = {}) const;

  /// Execution::commit of this attempt.
  Outcome commit(const TransactionWork& work, const RecordId& id, const Attempt& attempt) const;
  /// The handler's outcome as an event. `uncommitted`: uncommitted() of the last commit().
  ExchangeEvent event_of(Outcome outcome, const RecordId& id, const Attempt& attempt,
                         const std::optional<Outcome>& uncommitted) const;
  /// OutcomeUnknown or NotCommitted for a commit() that did not succeed; none for one that did.
  static std::optional<Outcome> uncommitted(const Outcome& committed);
  /// Within a catch block.
  void log_thrown(const RecordId& id) const;
  /// A transaction that was not committed.
  void log_failed(const RecordId& id, const std::string& why) const;

  /// Reserve, work and completion in one commit did not end the request; the exchange goes on.
  struct AfterOneCommit {
    Reserve reserve;
    TransactionEnd end;
    bool is_unknown = false;  ///< The work may have had an effect.

    ExchangeAction first_action(library::Serving& serving) const;
  };
  std::variant<Response, AfterOneCommit> in_one_commit(const Request& request,
                                                       const TransactionWork& work) const;
  /// The end of an attempt that is granted after that, under which nothing runs any more.
  ExchangeEvent event_after(const AfterOneCommit& after, const Send& send) const;

  /// The store's transactions. Aborts if it has none, with `what` in the message.
  Transactions& transactions_for(std::string_view what) const;
  /// Aborts if there is no handler.
  void expect_handler(bool is_there) const;
  /// The answer if a wait for the store would never end here, or the engine is gone.
  enum class Blocks : std::uint8_t { yes, no };
  std::optional<Response> refused_here(Blocks blocks = Blocks::yes) const;
  /// The guard is being destroyed.
  void detach() const noexcept { life_->guards.fetch_sub(1); }
  /// Former names of the operation that are the same for all its requests.
  std::vector<std::string> former_operations() const { return former_.fixed(); }

  /// The answer if InWork::is_now().
  Response called_from_work() const;
  Response store_unavailable(const std::string& why) const;

  /// Completes the record with this answer, without the parts that may not be stored.
  Complete complete_with(const Response& response, const RecordId& id,
                         const Attempt& attempt) const;

  const GuardOptions& options() const noexcept { return options_; }
  Engine::Parts& parts() const noexcept { return parts_; }

 private:
  class Run;

  /// How the work in a transaction ended, at its last run.
  struct WorkEnd {
    Outcome outcome{};
    std::string thrown{};  ///< Its exception, and the failed statement before; empty: none.
  };
  /// A transaction of the work, which stores the work's end in `end`.
  InTransaction transaction_of(const TransactionWork& work, WorkEnd& end) const;
  /// The outcome of commit(), from the transaction's end and the work's outcome.
  Outcome outcome_of(const TransactionEnd& end, Outcome of_work, const RecordId& id,
                     const Attempt& attempt) const;

  std::string_view whose_;
  Engine::Parts& parts_;
  std::shared_ptr<library::EngineLife> life_;
  GuardOptions options_;
  FormerNames former_;
};

}  // namespace idem
