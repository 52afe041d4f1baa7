#pragma once

#include "core/naming/former_names.hpp"
#include "core/record/no_waiting.hpp"
#include "library/engine.hpp"

#include <idem/guard.hpp>

#include <expected>

namespace idem {
namespace library {

inline constexpr std::string_view use_the_transaction =
    "a wait for the store in a transaction's work would be a wait for itself: use the Transaction "
    "that the work was given, and ask the store before or after it";

/// While it lives, this thread is in work that a transaction holds: it would wait for itself if it
/// asked a guard or the store for anything.
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

/// Without fields of ours and those that would break the framing of others.
Answer to_answer(Response response);
/// What the client hears.
Response to_response(Answer answer);
/// What is wrong with an answer that is to be stored: a sentence; empty: nothing.
std::string what_is_wrong(const Response& response);
/// 500: nothing of it is there.
Response work_failed(const RecordId& id);
/// 503: nothing was begun.
Response store_unavailable();

/// Aborts where the handler would be told how far another attempt came, which none is.
void refuse_resume(std::string_view whose, const GuardOptions& options);

/// How a request ends: what of an answer passes the store by, and what the client hears.
class Ending {
 public:
  /// An answer too large to be stored is settled without its body, which waits here meanwhile.
  void keep_large_body(ExchangeEvent& event);
  /// None: it goes on.
  std::optional<Response> answer_of(ExchangeAction& action);

 private:
  std::string large_body_;
};

}  // namespace library

/// How one operation is guarded, and the driving of its requests.
class Guard::Rules {
 public:
  /// `whose` names the guard in what is said of a mistake. Aborts on options that no request could
  /// be served under.
  Rules(std::string_view whose, Engine& engine, GuardOptions options);

  Response serve(const Request& request, const Handler& handler) const;
  Response serve_in_transaction(const Request& request, const TransactionWork& work) const;

  /// Or what the client hears instead: nothing was asked of the store.
  std::expected<Reserve, Response> reserve_of(const Request& request) const;
  std::shared_ptr<library::Serving> make_serving(const Request& request, Reserve reserve,
                                                 Millis wait_max) const;
  /// `wait_max`: for another one's attempt.
  ExchangeSettings settings_of(const Request& request, Millis wait_max) const;

  /// Instead of the store, where more is to be done with the reserve in one commit. Blocks.
  using AskReserve = std::function<StoreResult(const Reserve&)>;

  /// Carries actions out until there is an answer; `turn` is the handler's, and says how it ended.
  Response drive(const std::shared_ptr<library::Serving>& serving, ExchangeAction action,
                 const std::function<ExchangeEvent(const Send&)>& turn,
                 const AskReserve& ask_reserve = {}) const;

  /// Execution::commit of this attempt.
  Outcome commit(const TransactionWork& work, const RecordId& id, const Attempt& attempt) const;
  /// `uncommitted`: what the attempt's last commit() came to, where its rows are not there.
  ExchangeEvent event_of(Outcome outcome, const RecordId& id, const Attempt& attempt,
                         const std::optional<Outcome>& uncommitted) const;
  /// What event_of() wants to know of a commit() that ended so: OutcomeUnknown or NotCommitted.
  static std::optional<Outcome> uncommitted(const Outcome& committed);
  /// Within a catch block.
  void log_thrown(const RecordId& id) const;

  /// What is left where reserve, work and completion were asked for in one commit, and that was not
  /// the end of it.
  struct AfterOneCommit {
    Reserve reserve;
    TransactionEnd end;
    bool is_unknown = false;  ///< By the work's own word.

    ExchangeAction first_action(library::Serving& serving) const;
  };
  std::variant<Response, AfterOneCommit> in_one_commit(const Request& request,
                                                       const TransactionWork& work) const;
  /// Of an attempt that is granted after that: nothing is run under it any more.
  ExchangeEvent event_after(const AfterOneCommit& after, const Send& send) const;

  /// Of the store; aborts where it has none, and says so of `what`.
  Transactions& transactions_for(std::string_view what) const;
  /// Aborts where `handler` is null.
  void expect_handler(bool is_there) const;
  /// Where a wait for the store would not end, or there is no engine any more: the answer.
  enum class Blocks : std::uint8_t { yes, no };
  std::optional<Response> refused_here(Blocks blocks = Blocks::yes) const;
  /// The guard that these are of is gone.
  void detach() const noexcept { life_->guards.fetch_sub(1); }
  /// Operations under which older records of the requests may lie, as far as they are the same for
  /// all of them.
  std::vector<std::string> former_operations() const { return former_.fixed(); }

  /// Where InWork::is_now().
  Response called_from_work() const;
  Response store_unavailable(std::string why) const;

  /// What completes the record with this answer, as far as it may be stored.
  Complete complete_with(const Response& response, const RecordId& id,
                         const Attempt& attempt) const;

  const GuardOptions& options() const noexcept { return options_; }
  Engine::Parts& parts() const noexcept { return parts_; }

 private:
  class Run;

  /// A transaction of such work, which keeps what it said in `said`.
  InTransaction transaction_of(const TransactionWork& work, Outcome& said) const;
  /// What became of the work, once its transaction has ended so.
  Outcome outcome_of(const TransactionEnd& end, Outcome said, const RecordId& id,
                     const Attempt& attempt) const;

  std::string_view whose_;
  Engine::Parts& parts_;
  std::shared_ptr<library::EngineLife> life_;
  GuardOptions options_;
  FormerNames former_;
};

}  // namespace idem
