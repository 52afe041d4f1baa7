#pragma once

#include "store/circuit_breaker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace idem::breaking {

using namespace std::chrono_literals;
using Code = StoreError::Code;

inline constexpr Millis for_ever = 1h;

inline RecordId an_id(int number) {
  RecordId id;
  id.bytes[0] = static_cast<std::uint8_t>(number);
  return id;
}

/// Reserves with such a token get another answer than `Pending`.
inline constexpr int kept_in_a_cache = 77;
inline constexpr int executed = 78;
inline constexpr int meets_a_lease_that_is_over = 79;
inline constexpr Fence its_fence = 5;

/// Answers as the test sets it, on the asker's thread, and counts the calls.
class Failing final : public Store {
 public:
  struct Behaviour {
    std::optional<Code> error = Code::unavailable;  ///< None: it answers.
    bool holds = false;                             ///< It keeps what comes instead.
    bool reads = false;                             ///< But not what only reads.
    Verdict verdict = Verdict::done;                ///< Of an owner's verb.
  };

  void call(StoreCall what, StoreCompletion done) override {
    Behaviour behaviour;
    {
      const std::lock_guard lock(mutex_);
      ++calls_;
      if (std::holds_alternative<Find>(what)) ++finds_;
      if (const auto* release = std::get_if<Release>(&what)) releases_.push_back(*release);
      behaviour = behaviour_;
      behaviour.holds = behaviour.holds && !(behaviour.reads && std::holds_alternative<Find>(what));
      if (behaviour.holds) held_.push_back({std::move(what), std::move(done)});
    }
    came_.notify_all();
    if (!behaviour.holds) done(reply_to(what, behaviour.error, behaviour.verdict));
  }
  void watch(std::shared_ptr<Watcher> watcher) override { watcher_ = std::move(watcher); }
  const Identity& identity() const noexcept override { return identity_; }
  Transactions* transactions() noexcept override {
    return reinterpret_cast<Transactions*>(&identity_);  // Only compared.
  }
  ~Failing() override {
    let_go(at_end_);
    const std::lock_guard lock(mutex_);
    released_at_end_->store(static_cast<int>(releases_.size()));
  }
  void let_go_at_end(std::optional<Code> error) { at_end_ = error; }
  /// How many releases have come when it is closed.
  std::shared_ptr<std::atomic<int>> released_at_end() const { return released_at_end_; }

  void behave(Behaviour behaviour) {
    const std::lock_guard lock(mutex_);
    behaviour_ = behaviour;
  }
  void let_go(std::optional<Code> error) {
    std::vector<std::pair<StoreCall, StoreCompletion>> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (auto& [what, done] : held) done(reply_to(what, error));
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  int finds() const {
    const std::lock_guard lock(mutex_);
    return finds_;
  }
  void wait_for_finds(int count) {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return finds_ >= count; });
  }
  std::vector<Release> wait_for_releases(std::size_t count) {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return releases_.size() >= count; });
    return releases_;
  }
  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }

  std::shared_ptr<Watcher> watcher_;
  Identity identity_;

 private:
  static StoreResult reply_to(const StoreCall& what, std::optional<Code> error,
                              Verdict verdict = Verdict::done) {
    if (error) return std::unexpected(StoreError{*error, "by plan"});
    if (std::holds_alternative<Find>(what)) return StoreReply(std::optional<Record>());
    if (const auto* verb = std::get_if<Reserve>(&what)) {
      if (verb->token.bytes[0] == executed) {
        return StoreReply(ReserveOutcome(Execute{verb->id, {its_fence, verb->token}, {}}));
      }
      if (verb->token.bytes[0] == meets_a_lease_that_is_over) {
        return StoreReply(ReserveOutcome(Unknown{{}, std::nullopt, verb->id, true}));
      }
      const bool is_kept = verb->token.bytes[0] == kept_in_a_cache;
      return StoreReply(is_kept ? ReserveOutcome(Replay{}) : ReserveOutcome(Pending{}));
    }
    if (const auto* claim = std::get_if<Claim>(&what)) {
      return StoreReply(
          std::optional(Claimed{an_id(9), {}, {}, {its_fence, claim->token}, {}, {}}));
    }
    if (std::holds_alternative<List>(what)) return StoreReply(std::vector<Record>());
    if (std::holds_alternative<Count>(what)) return StoreReply(Census{});
    return StoreReply(OwnerReply{verdict, State::completed, {}});
  }

  mutable std::mutex mutex_;
  std::condition_variable came_;
  Behaviour behaviour_;
  int calls_ = 0;
  int finds_ = 0;
  std::vector<std::pair<StoreCall, StoreCompletion>> held_;
  std::vector<Release> releases_;
  std::optional<Code> at_end_ = Code::unavailable;
  std::shared_ptr<std::atomic<int>> released_at_end_ = std::make_shared<std::atomic<int>>(0);
};

inline Reserve reserve(int token) {
  Reserve verb;
  verb.token.bytes[0] = static_cast<std::uint8_t>(token);
  return verb;
}

inline Release release(const Token& token) {
  Release verb;
  verb.attempt.token = token;
  return verb;
}

/// A breaker around a store that a test makes fail or hang.
class AroundFailing : public testing::Test {
 protected:
  /// Three failures give it up; they need not last.
  void open(Millis pause, Millis silence = for_ever) {
    auto inner = std::make_unique<Failing>();
    inner_ = inner.get();
    store_ = make_circuit_breaker(
        std::move(inner), {.breaker = {.failures = 3, .pause_first = pause, .pause_max = pause},
                           .silence_max = silence,
                           .release_interval = 1ms,
                           .on_change =
                               [this](bool answers, const auto& why) {
                                 const std::lock_guard lock(mutex_);
                                 changes_.push_back(answers ? "back" : why);
                                 changed_.notify_all();
                               },
                           .log =
                               [this](LogLevel level, std::string_view event, auto fields) {
                                 std::string line(event);
                                 for (const LogField& field : fields) line += " " + field.value;
                                 const std::lock_guard lock(mutex_);
                                 lines_.push_back({level, line});
                               }});
  }
  void give_up() {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(asked(reserve(i)), Code::unavailable);
    wait_for_changes(1);
    EXPECT_FALSE(store_->health().answers);
  }

  /// How it failed, if it did. Waits for the answer, which comes exactly once.
  template <class Verb>
  std::optional<Code> asked(Verb verb) {
    const auto answers = std::make_shared<std::atomic<int>>(0);
    std::promise<std::optional<Code>> promise;
    auto result = promise.get_future();
    store_->call(StoreCall(std::move(verb)), [&promise, answers](StoreResult reply) {
      if (answers->fetch_add(1) > 0) return;
      promise.set_value(reply ? std::nullopt : std::optional(reply.error().code));
    });
    const auto code = result.get();
    answered_.push_back(answers);
    return code;
  }
  void wait_for_changes(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return changes_.size() >= count; });
  }

  void TearDown() override {
    store_.reset();
    for (const auto& count : answered_) EXPECT_EQ(count->load(), 1);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> changes_;
  std::vector<std::pair<LogLevel, std::string>> lines_;  ///< Of calls of this thread.
  std::vector<std::shared_ptr<std::atomic<int>>> answered_;
  Failing* inner_ = nullptr;
  std::unique_ptr<CircuitBreakerStore> store_;
};

}  // namespace idem::breaking
