#include "library/async_serving.hpp"

#include <idem/assert.hpp>

namespace idem::library {

AsyncServing::AsyncServing(std::shared_ptr<const Guard::Rules> rules, Request request,
                           Reserve reserve, Turn turn, CallbackGuard::ResponseTaken done)
    : Serving(rules->settings_of(request, rules->options().wait), std::move(reserve)),
      rules_(std::move(rules)),
      parts_(rules_->parts()),
      request_(std::move(request)),
      turn_(std::move(turn)),
      done_(std::move(done)),
      busy_(std::make_unique<Engine::Parts::Busy>(parts_)) {
  parts_.served_without_thread.fetch_add(1);
}

void AsyncServing::begin(ExchangeAction first) {
  renewed_.emplace(parts_, shared_from_this(), rules_->options().run_max);
  proceed(std::move(first));
  handle_events();
}

void AsyncServing::post(ExchangeEvent event) {
  {
    const std::lock_guard lock(mutex_);
    // Now the settler waits for its events.
    if (is_over_) return Serving::post(std::move(event));
    events_.push_back(std::move(event));
    if (is_driven_) return;
    is_driven_ = true;
  }
  handle_events();
}

// Its handler may be on a context that no thread runs any more.
void AsyncServing::overdue() { post(WorkUnknown{"run_max_over", {}}); }

std::unique_ptr<Engine::Parts::Busy> AsyncServing::hold() const {
  const std::lock_guard lock(mutex_);
  return is_over_ ? nullptr : std::make_unique<Engine::Parts::Busy>(parts_);
}

bool AsyncServing::expects(const ExchangeEvent& event) const {
  switch (expected_) {
    case Expected::nothing:
      return false;
    case Expected::store:
      return std::holds_alternative<StoreAnswered>(event);
    case Expected::time:
      return std::holds_alternative<RetryDue>(event);
    case Expected::waking:
      return std::holds_alternative<Woken>(event) || std::holds_alternative<WaitOver>(event);
    case Expected::turn:
      return std::holds_alternative<WorkAnswered>(event) ||
             std::holds_alternative<WorkCommitted>(event) ||
             std::holds_alternative<WorkUnknown>(event) ||
             std::holds_alternative<UpstreamAnswered>(event);
  }
  return false;
}

void AsyncServing::handle_events() {
  for (;;) {
    std::optional<ExchangeEvent> event;
    {
      const std::lock_guard lock(mutex_);
      if (events_.empty()) {
        is_driven_ = false;
        return;
      }
      event = std::move(events_.front());
      events_.pop_front();
    }
    if (!expects(*event)) continue;
    if (expected_ == Expected::turn) {
      patience_.renew();
      ending_.keep_large_body(*event);
    }
    proceed(on(std::move(*event)));
  }
}

void AsyncServing::proceed(ExchangeAction action) {
  expected_ = Expected::nothing;
  for (;;) {
    if (!std::holds_alternative<WaitFor>(action) && awaited_) {
      parts_.awaited->remove(*std::exchange(awaited_, std::nullopt), *this);
    }
    if (auto answer = ending_.answer_of(action)) return conclude(std::move(*answer));
    auto next = carry_out(action);
    if (!next) return;
    action = std::move(*next);
  }
}

std::optional<ExchangeAction> AsyncServing::carry_out(ExchangeAction& action) {
  const auto self = shared_from_this();
  if (auto* const asked = std::get_if<Ask>(&action)) {
    expected_ = Expected::store;
    parts_.store->call(std::move(asked->call), [self](StoreResult result) {
      self->parts_.note(result);
      self->post(StoreAnswered{std::move(result)});
    });
    return std::nullopt;
  }
  if (const auto* const later = std::get_if<AskLater>(&action)) {
    if (!patience_.lasts(later->delay)) return on(ClientDeadline{});
    expected_ = Expected::time;
    parts_.post_at(MonotonicClock::now() + later->delay, self, RetryDue{});
    return std::nullopt;
  }
  if (std::holds_alternative<Connect>(action)) return on(UpstreamReady{});
  if (const auto* const wait = std::get_if<WaitFor>(&action)) {
    wait_for(*wait);
    return std::nullopt;
  }
  const auto* const send = std::get_if<Send>(&action);
  IDEM_ASSERT(send != nullptr && turn_ != nullptr);
  expected_ = Expected::turn;
  start_turn(*send);
  return std::nullopt;
}

// The thread may be the store's, on which an exception would end the process.
void AsyncServing::start_turn(const Send& send) {
  try {
    std::exchange(turn_, nullptr)(shared_from_this(), send);
  } catch (...) {
    rules_->log_thrown(send.id);
    post(WorkUnknown{"handler_threw", {}});
  }
}

void AsyncServing::wait_for(const WaitFor& wait) {
  expected_ = Expected::waking;
  if (awaited_) return;  // The wait keeps its end.
  awaited_ = wait.id;
  parts_.post_at(wait.until, shared_from_this(), WaitOver{});
  parts_.awaited->add(wait.id, shared_from_this());
}

void AsyncServing::conclude(Response answer) {
  const auto self = shared_from_this();
  std::unique_ptr<Engine::Parts::Busy> busy;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    busy = std::move(busy_);
  }
  renewed_.reset();
  turn_ = nullptr;
  parts_.note_end(*this);
  if (owes_settlement()) parts_.settle_later(self);
  parts_.served_without_thread.fetch_sub(1);
  call_back("the `done` of CallbackGuard::serve()", std::exchange(done_, nullptr),
            std::move(answer));
}

}  // namespace idem::library
