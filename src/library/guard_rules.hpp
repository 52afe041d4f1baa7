#pragma once

#include "library/engine.hpp"

#include <idem/guard.hpp>

#include <expected>

namespace idem {
namespace library {

/// While it lives, this thread is in work that a transaction holds: it would wait for itself if it
/// asked a guard for anything.
class InWork {
 public:
  InWork();
  ~InWork();
  InWork(const InWork&) = delete;
  InWork& operator=(const InWork&) = delete;

  static bool is_now() noexcept;
};

/// Without fields of ours and those that would break the framing of others.
Answer to_answer(Response response);
/// 500: nothing of it is there.
Response work_failed(const RecordId& id);
/// 503: nothing was begun.
Response store_unavailable();

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
  /// Aborts on options that no request could be served under.
  Rules(Engine::Parts& parts, GuardOptions options);

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
  ExchangeEvent event_of(Outcome outcome, const Attempt& attempt) const;
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

  Engine::Parts& parts_;
  GuardOptions options_;
};

}  // namespace idem
