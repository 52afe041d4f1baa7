#include "store/faulty.hpp"

#include <idem/store_wait.hpp>

#include <algorithm>
#include <mutex>
#include <random>
#include <vector>

namespace idem {
namespace {

StoreResult error(StoreError::Code code, const char* detail) {
  return std::unexpected(StoreError{code, detail});
}

/// The delayed actions, and the dice. From any thread.
class Delays {
 public:
  using Action = std::move_only_function<void()>;

  Delays(std::uint64_t seed, unsigned calls_max)
      : random_(seed), calls_max_(std::max(1u, calls_max)) {}

  std::uint64_t pick(std::uint64_t below) {
    const std::lock_guard lock(mutex_);
    return random_() % below;
  }

  void add(Action action) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t due = calls_ + 1 + random_() % calls_max_;
    waiting_.push_back({due, random_(), std::move(action)});
  }

  std::uint64_t calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return waiting_.empty();
  }

  /// Counts a call; returns the actions that are due, shuffled.
  std::vector<Action> tick() {
    const std::lock_guard lock(mutex_);
    ++calls_;
    return take(calls_);
  }
  std::vector<Action> all() {
    const std::lock_guard lock(mutex_);
    return take(UINT64_MAX);
  }

 private:
  struct Waiting {
    std::uint64_t due;
    std::uint64_t order;
    Action action;
  };

  std::vector<Action> take(std::uint64_t now) {
    const auto ready =
        std::ranges::partition(waiting_, [now](const auto& w) { return w.due > now; });
    std::ranges::sort(ready, {}, &Waiting::order);
    std::vector<Action> actions;
    for (auto& waiting : ready) actions.push_back(std::move(waiting.action));
    waiting_.erase(ready.begin(), ready.end());
    return actions;
  }

  std::mutex mutex_;
  std::mt19937_64 random_;
  unsigned calls_max_;
  std::uint64_t calls_ = 0;
  std::vector<Waiting> waiting_;
};

class Faulty final : public FaultyStore {
 public:
  Faulty(std::unique_ptr<Store> inner, FaultPlan plan)
      : plan_(std::move(plan)),
        delays_(plan_.seed, plan_.delay_calls_max),
        inner_(std::move(inner)) {}

  ~Faulty() override {
    // A released call may complete late, ask again and be delayed again: until nothing moves.
    std::uint64_t before = 0;
    do {
      before = delays_.calls();
      flush();
      [[maybe_unused]] const auto answered = ask_and_wait(*inner_, Find{});
    } while (delays_.calls() != before || !delays_.empty());
  }

  void call(StoreCall what, StoreCompletion done) override {
    auto ready = delays_.tick();
    const auto fault = next_fault(what);
    apply(fault, std::move(what), std::move(done));
    for (auto& action : ready) action();
  }

  /// Notices of changes come without faults: the changes did happen.
  void watch(std::shared_ptr<Watcher> watcher) override { inner_->watch(std::move(watcher)); }

  const Identity& identity() const noexcept override { return inner_->identity(); }
  std::size_t lifecycle_slice() const noexcept override { return inner_->lifecycle_slice(); }
  std::optional<std::uint64_t> asked() const noexcept override { return inner_->asked(); }

  void flush() override {
    for (auto& action : delays_.all()) action();
  }

 private:
  Fault next_fault(const StoreCall& what) {
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = ++calls_;
    }
    if (plan_.decide) {
      if (const auto decided = plan_.decide(what, number)) return *decided;
    }
    std::uint64_t dice = delays_.pick(1000);
    const std::pair<Fault, unsigned> chances[] = {
        {Fault::refuse, plan_.refuse},         {Fault::lose_call, plan_.lose_call},
        {Fault::lose_reply, plan_.lose_reply}, {Fault::late_call, plan_.late_call},
        {Fault::delay_call, plan_.delay_call}, {Fault::delay_reply, plan_.delay_reply}};
    for (const auto& [fault, chance] : chances) {
      if (dice < chance) return fault;
      dice -= chance;
    }
    return Fault::none;
  }

  void apply(Fault fault, StoreCall what, StoreCompletion done) {
    switch (fault) {
      case Fault::none:
        return inner_->call(std::move(what), std::move(done));
      case Fault::refuse:
        return answer(std::move(done), StoreError::Code::unavailable, "refused by plan");
      case Fault::lose_call:
        return answer(std::move(done), StoreError::Code::in_doubt, "call lost by plan");
      case Fault::lose_reply:
        return inner_->call(std::move(what), [done = std::move(done)](StoreResult) mutable {
          done(error(StoreError::Code::in_doubt, "reply lost by plan"));
        });
      case Fault::late_call:
        delays_.add([this, what = std::move(what)]() mutable {
          inner_->call(std::move(what), [](StoreResult) {});
        });
        return answer(std::move(done), StoreError::Code::in_doubt, "call late by plan");
      case Fault::delay_call:
        return delays_.add([this, what = std::move(what), done = std::move(done)]() mutable {
          inner_->call(std::move(what), std::move(done));
        });
      case Fault::delay_reply:
        return delay_reply(std::move(what), std::move(done));
    }
  }

  void delay_reply(StoreCall what, StoreCompletion done) {
    inner_->call(std::move(what), [this, done = std::move(done)](StoreResult result) mutable {
      delays_.add([this, done = std::move(done), result = std::move(result)]() mutable {
        on_inner_thread([done = std::move(done), result = std::move(result)]() mutable {
          done(std::move(result));
        });
      });
    });
  }

  void answer(StoreCompletion done, StoreError::Code code, const char* detail) {
    on_inner_thread(
        [done = std::move(done), code, detail]() mutable { done(error(code, detail)); });
  }

  /// Completions belong on a thread of the store's, so an unneeded read brings `action` there.
  void on_inner_thread(std::move_only_function<void()> action) {
    inner_->call(Find{}, [action = std::move(action)](StoreResult) mutable { action(); });
  }

  FaultPlan plan_;
  std::mutex mutex_;
  std::uint64_t calls_ = 0;
  Delays delays_;
  std::unique_ptr<Store> inner_;
};

}  // namespace

std::unique_ptr<FaultyStore> make_faulty(std::unique_ptr<Store> inner, FaultPlan plan) {
  return std::make_unique<Faulty>(std::move(inner), std::move(plan));
}

}  // namespace idem
