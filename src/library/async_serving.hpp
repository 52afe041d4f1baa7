#pragma once

#include "library/guard_rules.hpp"

#include <idem/callback_guard.hpp>

namespace idem::library {

/// One request that no thread of its own serves. Whoever tells it something (the store, the heart,
/// the handler) carries it on, as far as it goes without waiting; one at a time, and what others
/// tell meanwhile is heard after that. While it is served it keeps the engine from ending; after
/// that it touches nothing of the engine's.
class AsyncServing final : public Serving, public std::enable_shared_from_this<AsyncServing> {
 public:
  /// The handler's, which ends by telling how. Called once for each Send, without a lock.
  using Turn =
      std::move_only_function<void(const std::shared_ptr<AsyncServing>& self, const Send& send)>;

  AsyncServing(std::shared_ptr<const Guard::Rules> rules, Request request, Reserve reserve,
               Turn turn, CallbackGuard::ResponseTaken done);

  /// Once: goes on with this action.
  void begin(ExchangeAction first);

  void tell(ExchangeEvent event) override;
  void overdue() override;

  /// Keeps the engine from ending; null: it may have ended.
  std::unique_ptr<Engine::Parts::Busy> hold() const;
  const Guard::Rules& rules() const noexcept { return *rules_; }
  const Request& request() const noexcept { return request_; }

 private:
  /// What it waits for; told anything else, it lets that be.
  enum class Expected : std::uint8_t { nothing, store, time, waking, turn };

  bool expects(const ExchangeEvent& event) const;
  void go_on();
  void carry_on(ExchangeAction action);
  /// None: it waits for what was asked of others.
  std::optional<ExchangeAction> carry_out(ExchangeAction& action);
  void wait_for(const WaitFor& wait);
  void conclude(Response answer);

  std::shared_ptr<const Guard::Rules> rules_;
  Engine::Parts& parts_;
  Request request_;
  Turn turn_;
  CallbackGuard::ResponseTaken done_;

  // Of whoever carries it on.
  Expected expected_ = Expected::nothing;
  Patience patience_;
  Ending ending_;
  std::optional<RecordId> awaited_;
  std::optional<Engine::Parts::Renewed> renewed_;

  mutable std::mutex mutex_;
  std::deque<ExchangeEvent> told_;
  bool is_carried_ = true;  ///< Until begin().
  bool is_over_ = false;
  std::unique_ptr<Engine::Parts::Busy> busy_;
};

}  // namespace idem::library
