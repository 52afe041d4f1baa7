#pragma once

#include "library/guard_rules.hpp"
#include "library/misuse.hpp"

#include <idem/callback_guard.hpp>

namespace idem::library {

/// Calls the service back. There is nobody to whom an exception of it could go, on a thread of the
/// store's or the engine's: it ends the process, with a sentence.
template <class Done, class... Results>
void call_back(std::string_view what, Done done, Results... results) noexcept {
  try {
    done(std::move(results)...);
  } catch (...) {
    misused(thrown_by(what) + "; it must handle its exceptions itself");
  }
}

/// One request without a thread of its own. The thread that posts an event (the store's, the
/// heartbeat thread, a handler's) drives it until it waits again; one thread at a time, which also
/// handles the events that others post meanwhile. Until its answer it keeps the engine from ending;
/// after that it does not touch the engine.
class AsyncServing final : public Serving, public std::enable_shared_from_this<AsyncServing> {
 public:
  /// Starts the handler, which posts its end. Called once for each Send, without a lock.
  using Turn =
      std::move_only_function<void(const std::shared_ptr<AsyncServing>& self, const Send& send)>;

  AsyncServing(std::shared_ptr<const Guard::Rules> rules, Request request, Reserve reserve,
               Turn turn, CallbackGuard::ResponseTaken done);

  /// Starts with this action. Called once.
  void begin(ExchangeAction first);

  void post(ExchangeEvent event) override;
  void overdue() override;

  /// Keeps the engine from ending; null: it may have ended.
  std::unique_ptr<Engine::Parts::Busy> hold() const;
  const Guard::Rules& rules() const noexcept { return *rules_; }
  const Request& request() const noexcept { return request_; }

 private:
  /// The event that it waits for; it ignores all others.
  enum class Expected : std::uint8_t { nothing, store, time, waking, turn };

  bool expects(const ExchangeEvent& event) const;
  void handle_events();
  /// Carries out this action and those after it, until it waits or has an answer.
  void proceed(ExchangeAction action);
  /// The next action; none: it waits for an event.
  std::optional<ExchangeAction> carry_out(ExchangeAction& action);
  void start_turn(const Send& send);
  void wait_for(const WaitFor& wait);
  void conclude(Response answer);

  std::shared_ptr<const Guard::Rules> rules_;
  Engine::Parts& parts_;
  Request request_;
  Turn turn_;
  CallbackGuard::ResponseTaken done_;

  // Only the thread that drives it uses these.
  Expected expected_ = Expected::nothing;
  Patience patience_;
  Ending ending_;
  std::optional<RecordId> awaited_;
  std::optional<Engine::Parts::Renewed> renewed_;

  mutable std::mutex mutex_;
  std::deque<ExchangeEvent> events_;
  bool is_driven_ = true;  ///< By a thread; by the one that calls begin() at first.
  bool is_over_ = false;
  std::unique_ptr<Engine::Parts::Busy> busy_;
};

}  // namespace idem::library
