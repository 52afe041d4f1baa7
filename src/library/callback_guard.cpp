#include <idem/callback_guard.hpp>

#include "library/async_serving.hpp"
#include "library/misuse.hpp"

#include <atomic>
#include <mutex>

namespace idem {
namespace {

using library::AsyncServing;
using library::call_back;

constexpr std::string_view commit_done = "the `done` of HandlerTurn::commit()";
constexpr std::string_view serve_done = "the `done` of CallbackGuard::serve()";
constexpr std::string_view transaction_done = "the `done` of CallbackGuard::serve_in_transaction()";

class Turn final : public HandlerTurn, public std::enable_shared_from_this<Turn> {
 public:
  Turn(std::shared_ptr<AsyncServing> serving, const Send& send)
      : serving_(std::move(serving)), id_(send.id), attempt_(send.attempt) {}
  ~Turn() override { end(WorkUnknown{"handler_dropped", {}}); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  const Request& request() const noexcept override { return serving_->request(); }
  const RecordId& id() const noexcept override { return id_; }
  const Attempt& attempt() const noexcept override { return attempt_; }
  Millis lease_left() const override { return serving_->lease_left(); }

  void commit(TransactionWork work, CommitTaken done) override;
  void finish(Outcome outcome) override;
  void threw() override {
    if (const auto held = serving_->hold()) serving_->rules().log_thrown(id_);
    end(WorkUnknown{"handler_threw", {}});
  }

 private:
  void end(ExchangeEvent event) {
    if (!has_ended_.exchange(true)) serving_->post(std::move(event));
  }

  /// Marks a commit as under way. Returns the outcome instead if an earlier commit left it unknown.
  std::optional<Outcome> begin_commit() {
    const std::lock_guard lock(mutex_);
    // Rows that may be there are not written a second time.
    if (is_unknown()) return uncommitted_;
    ++under_way_;
    uncommitted_ = NotCommitted{library::work_failed(id_)};  // Until it has committed.
    return std::nullopt;
  }
  void end_commit(const Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    --under_way_;
    const bool is_done = std::holds_alternative<Committed>(outcome);
    if (is_done || !is_unknown()) uncommitted_ = Guard::Rules::uncommitted(outcome);
  }
  /// Under the lock.
  bool is_unknown() const {
    return uncommitted_ && std::holds_alternative<OutcomeUnknown>(*uncommitted_);
  }

  std::shared_ptr<AsyncServing> serving_;
  RecordId id_;
  Attempt attempt_;
  std::atomic<bool> has_ended_ = false;
  std::mutex mutex_;
  std::optional<Outcome> uncommitted_{};
  int under_way_ = 0;  ///< Commits.
};

// Holds the engine, whose log receives mistakes of the handler.
void Turn::finish(Outcome outcome) {
  const auto held = serving_->hold();
  if (!held || has_ended_.load()) return;
  std::unique_lock lock(mutex_);
  const bool is_under_way = under_way_ > 0;
  const std::optional<Outcome> uncommitted = uncommitted_;
  lock.unlock();
  const Guard::Rules& rules = serving_->rules();
  const bool is_known = !is_under_way || std::holds_alternative<Committed>(outcome) ||
                        std::holds_alternative<OutcomeUnknown>(outcome);
  if (!is_known) {
    rules.parts().options.log(
        LogLevel::error, "answer_without_rows",
        {{"operation_ref", to_hex(id_.bytes)},
         {"why",
          "the handler called finish() while its commit() was under way: wait until commit() has "
          "called back, and finish with its outcome"}});
    outcome = OutcomeUnknown{"commit_under_way", {}};
  }
  end(rules.event_of(std::move(outcome), id_, attempt_, uncommitted));
}

// Holds the turn meanwhile: a dropped handler must not report "unknown" before the commit's end is
// known.
void Turn::commit(TransactionWork work, CommitTaken done) {
  auto held = serving_->hold();
  if (!held) {
    return call_back(commit_done, std::move(done), std::exception_ptr(),
                     Outcome(NotCommitted{library::work_failed(id_)}));
  }
  if (const auto unknown = begin_commit()) {
    return call_back(commit_done, std::move(done), std::exception_ptr(), *unknown);
  }
  serving_->rules().parts().transaction_threads.run([self = shared_from_this(),
                                                     held = std::move(held), work = std::move(work),
                                                     done = std::move(done)]() mutable {
    Outcome outcome = NotCommitted{};
    std::exception_ptr thrown;
    try {
      outcome = self->serving_->rules().commit(work, self->id_, self->attempt_);
    } catch (...) {
      thrown = std::current_exception();
    }
    work = nullptr;
    self->end_commit(outcome);
    call_back(commit_done, std::move(done), std::move(thrown), std::move(outcome));
    self.reset();
  });
}

}  // namespace

CallbackGuard::CallbackGuard(Engine& engine, GuardOptions options)
    : rules_(std::make_shared<Guard::Rules>("CallbackGuard", engine, std::move(options))) {
  library::refuse_resume("CallbackGuard", rules_->options());
}

CallbackGuard::~CallbackGuard() { rules_->detach(); }

void CallbackGuard::serve(Request request, CallbackHandler handler, ResponseTaken done) {
  rules_->expect_handler(handler != nullptr && done != nullptr);
  if (auto refused = rules_->refused_here(Guard::Rules::Blocks::no)) {
    return call_back(serve_done, std::move(done), std::move(*refused));
  }
  const Engine::Parts::Busy busy(rules_->parts());
  auto reserve = rules_->reserve_of(request);
  if (!reserve) return call_back(serve_done, std::move(done), std::move(reserve.error()));
  if (rules_->parts().served_without_thread.load() >= limits::served_without_thread_max) {
    return call_back(serve_done, std::move(done), library::store_unavailable());
  }
  auto turn = [handler = std::move(handler)](const std::shared_ptr<AsyncServing>& self,
                                             const Send& send) mutable {
    const auto mine = std::make_shared<Turn>(self, send);
    try {
      handler(mine);
    } catch (...) {
      mine->threw();  // Before the last reference goes, which would report a dropped handler.
    }
  };
  const auto serving = std::make_shared<AsyncServing>(
      rules_, std::move(request), std::move(*reserve), std::move(turn), std::move(done));
  serving->begin(serving->start());
}

void CallbackGuard::serve_in_transaction(Request request, TransactionWork work,
                                         ResponseTaken done) {
  rules_->expect_handler(work != nullptr && done != nullptr);
  if (auto refused = rules_->refused_here(Guard::Rules::Blocks::no)) {
    return call_back(transaction_done, std::move(done), std::move(*refused));
  }
  auto& parts = rules_->parts();
  const Engine::Parts::Busy busy(parts);
  if (parts.served_without_thread.load() >= limits::served_without_thread_max) {
    return call_back(transaction_done, std::move(done), library::store_unavailable());
  }
  using After = Guard::Rules::AfterOneCommit;
  parts.transaction_threads.run([rules = rules_, request = std::move(request),
                                 work = std::move(work), done = std::move(done),
                                 held = std::make_unique<Engine::Parts::Busy>(parts)]() mutable {
    auto begun = rules->in_one_commit(request, work);
    work = nullptr;
    if (auto* const answer = std::get_if<Response>(&begun)) {
      return call_back(transaction_done, std::move(done), std::move(*answer));
    }
    const auto after = std::make_shared<After>(std::get<After>(std::move(begun)));
    auto turn = [after](const std::shared_ptr<AsyncServing>& self, const Send& send) {
      self->post(self->rules().event_after(*after, send));
    };
    const auto serving = std::make_shared<AsyncServing>(rules, std::move(request), after->reserve,
                                                        std::move(turn), std::move(done));
    serving->begin(after->first_action(*serving));
  });
}

}  // namespace idem
