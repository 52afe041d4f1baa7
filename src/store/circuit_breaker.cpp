#include "store/circuit_breaker.hpp"

#include "core/record/lease_end.hpp"
#include "store/calls_under_way.hpp"
#include "store/damage_log.hpp"
#include "store/orphaned_attempts.hpp"
#include "store/verb_traits.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace idem {
namespace {

/// Journals are tables of their own: whether they work says nothing about records, and clients must
/// not suffer from them.
template <class Verb>
inline constexpr bool is_of_a_journal_verb =
    std::is_same_v<Verb, AppendLine> || std::is_same_v<Verb, ReadLines> ||
    std::is_same_v<Verb, ListJournals> || std::is_same_v<Verb, DropJournal>;
bool is_of_a_journal(std::size_t verb) noexcept {
  static constexpr auto are = []<std::size_t... n>(std::index_sequence<n...>) {
    return std::array{is_of_a_journal_verb<std::variant_alternative_t<n, AnyVerb>>...};
  }(std::make_index_sequence<std::variant_size_v<AnyVerb>>());
  return are[verb];
}

bool is_failure(const StoreResult& result) noexcept {
  return !result && !result.error().is_final();
}

/// Tokens of reserves whose reply was lost. From any thread.
class Doubts {
 public:
  bool has(const Token& token) const {
    if (!any_.load(std::memory_order_acquire)) return false;
    const std::lock_guard lock(mutex_);
    return young_.contains(token) || old_.contains(token);
  }
  void add(const Token& token) {
    const std::lock_guard lock(mutex_);
    if (young_.size() >= limits::store_doubts_max / 2) old_ = std::exchange(young_, {});
    young_.insert(token);
    any_.store(true, std::memory_order_release);
  }
  void remove(const Token& token) {
    if (!any_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    young_.erase(token);
    old_.erase(token);
    any_.store(!young_.empty() || !old_.empty(), std::memory_order_release);
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::set<Token> young_;
  std::set<Token> old_;
};

/// An answer that a cache in front of the store may have given proves nothing about the store.
bool comes_from_the_store(const StoreResult& result) {
  if (!result) return true;
  const auto* const outcome = std::get_if<ReserveOutcome>(&*result);
  return outcome == nullptr || !(std::holds_alternative<Replay>(*outcome) ||
                                 std::holds_alternative<InProgress>(*outcome));
}

/// True if the store cannot give this answer without a write.
bool has_written(const StoreResult& result) {
  if (!result) return false;
  if (const auto* outcome = std::get_if<ReserveOutcome>(&*result)) {
    return std::holds_alternative<Execute>(*outcome) || std::holds_alternative<Pending>(*outcome);
  }
  if (const auto* claimed = std::get_if<std::optional<Claimed>>(&*result)) {
    return claimed->has_value();
  }
  const auto* const ended = std::get_if<OwnerReply>(&*result);
  return ended != nullptr && ended->verdict == Verdict::done;
}

std::string text_of(Millis time) {
  const bool is_whole = time % std::chrono::seconds(1) == Millis{};
  return is_whole ? std::to_string(time / std::chrono::seconds(1)) + " s"
                  : std::to_string(time.count()) + " ms";
}

class CircuitBreaker final : public CircuitBreakerStore {
 public:
  CircuitBreaker(std::unique_ptr<Store> inner, BreakerRule rule)
      : on_change_(std::move(rule.on_change)),
        log_(std::move(rule.log)),
        damage_(log_),
        silence_("no reply for " + text_of(rule.silence_max)),
        under_way_(rule.silence_max),
        orphans_(*inner, rule.release_interval),
        breaker_(rule.breaker),
        inner_(std::move(inner)) {
    thread_ = std::thread([this] { run(); });
  }

  // After it no refusal waits for the thread; then the store finishes its calls.
  ~CircuitBreaker() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void call(StoreCall what, StoreCompletion done) override {
    const auto token = token_of(what);
    const bool asks = traits_of(what).asks_for_a_record;
    const bool is_refused = given_up_.load(std::memory_order_acquire) &&
                            traits_of(what).may_be_refused && !is_of_a_journal(what.index()) &&
                            !(asks && doubts_.has(*token));
    if (is_refused || (token && under_way_.repeats_a_late_one(what, *token))) {
      return refuse(std::move(done));
    }
    const auto [ticket, wake] = under_way_.begin(what, std::move(done));
    if (wake) wake_up();
    inner_->call(std::move(what), [this, ticket](StoreResult result) {
      returned(under_way_.end(ticket), std::move(result));
    });
  }

  void watch(std::shared_ptr<Watcher> watcher) override { inner_->watch(std::move(watcher)); }
  const Identity& identity() const noexcept override { return inner_->identity(); }
  std::size_t lifecycle_slice() const noexcept override { return inner_->lifecycle_slice(); }
  std::optional<std::uint64_t> asked() const noexcept override { return inner_->asked(); }
  Transactions* transactions() noexcept override { return inner_->transactions(); }

  StoreHealth health() const noexcept override {
    return {!given_up_.load(std::memory_order_acquire), refused_.load(std::memory_order_relaxed),
            damage_.noted()};
  }

 private:
  void returned(CallsUnderWay::Call call, StoreResult result) {
    if (!is_of_a_journal(call.verb)) {
      if (call.token) note_token(call.traits.asks_for_a_record, *call.token, result);
      damage_.look_at(result);
      log_lease_end(log_, result);
      note(result, false, call.traits.only_reads);
    }
    if (call.done) return call.done(std::move(result));
    if (!call.asked_for) return;
    orphans_.take(std::move(*call.asked_for), result);
    wake_up();
  }

  // So that the thread waits no longer than what has just begun.
  void wake_up() {
    {
      const std::lock_guard lock(mutex_);
    }
    wake_.notify_one();
  }

  void note_token(bool asks, const Token& token, const StoreResult& result) {
    const bool in_doubt = !result && result.error().code == StoreError::Code::in_doubt;
    if (asks && in_doubt) {
      doubts_.add(token);
    } else if (!in_doubt) {
      doubts_.remove(token);
    }
  }

  // While the circuit is open, only a failed probe lengthens the pauses: settling calls have pauses
  // of their own. A store that can read but not write (full disk, replica) answers the probe. Then
  // the first call that would write is the trial; if it fails, the pauses go on from where they
  // were.
  void note(const StoreResult& result, bool is_probe, bool reads) {
    const bool failed = is_failure(result);
    if (!failed && !is_probe && !comes_from_the_store(result)) return;
    if (!failed && !is_probe && !in_trouble_.load(std::memory_order_acquire)) return;
    {
      const std::lock_guard lock(mutex_);
      if (is_probe) probing_ = false;
      if (failed) {
        if (is_probe || !given_up_) breaker_.failed(MonotonicClock::now());
        note_failed(result.error().detail, !reads);
      } else if (!must_write_ || has_written(result)) {
        breaker_.succeeded();
        must_write_ = false;
        in_trouble_.store(false, std::memory_order_release);
        given_up_.store(false, std::memory_order_release);
      } else if (is_probe) {
        const bool may_hang = under_way_.owes_writes();
        if (may_hang) breaker_.failed(MonotonicClock::now());
        given_up_.store(may_hang, std::memory_order_release);
      }
      if (!is_probe && given_up_ == reported_) return;  // Nothing for the thread to do.
    }
    wake_.notify_one();
  }

  // Under the lock.
  void note_failed(std::string why, bool would_write) {
    why_ = std::move(why);
    must_write_ |= would_write;
    in_trouble_.store(true, std::memory_order_release);
    given_up_.store(breaker_.is_on_trial(), std::memory_order_release);
  }

  void refuse(StoreCompletion done) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    std::unique_lock lock(mutex_);
    if (closing_) {  // Only threads of the store's still ask.
      const StoreResult refusal = not_asked();
      lock.unlock();
      return done(refusal);
    }
    waiting_.push_back(std::move(done));
    lock.unlock();
    wake_.notify_one();
  }

  StoreResult not_asked() const {
    return std::unexpected(
        StoreError{StoreError::Code::unavailable, "the store does not answer: " + why_});
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto now = MonotonicClock::now();
      if (!waiting_.empty()) {
        answer(lock);
      } else if (closing_) {
        return;
      } else if (reported_ != given_up_) {
        report(lock);
      } else if (given_up_ && !probing_ && !breaker_.is_open(now)) {
        probe(lock);
      } else if (const auto next = when_next(); !next) {
        wake_.wait(lock);
      } else if (*next > now) {
        wake_.wait_for(lock, *next - now);
      } else {
        give_up_late(lock, now);
      }
    }
  }

  /// When the thread has something to do without being asked. None: there is nothing.
  std::optional<MonotonicTime> when_next() {
    std::optional<MonotonicTime> next = under_way_.next();
    const auto at = [&next](std::optional<MonotonicTime> one) {
      if (one && (!next || *one < *next)) next = one;
    };
    at(orphans_.next());
    if (given_up_ && !probing_) at(breaker_.open_until());
    return next;
  }

  void give_up_late(std::unique_lock<std::mutex>& lock, MonotonicTime now) {
    auto late = under_way_.take_late(now, given_up_);
    if (late.opens) {
      if (!given_up_) breaker_.open(now);
      note_failed(silence_, late.would_write);
    }
    lock.unlock();
    for (auto& [done, code] : late.askers) {
      done(std::unexpected(StoreError{code, "the store does not answer: " + silence_}));
    }
    orphans_.try_again(now);
    // Nobody else may be asking.
    if (late.in_question) call(Find{}, [](const StoreResult&) {});
    lock.lock();
  }

  void answer(std::unique_lock<std::mutex>& lock) {
    auto waiting = std::exchange(waiting_, {});
    const StoreResult refusal = not_asked();
    lock.unlock();
    for (auto& done : waiting) done(refusal);
    lock.lock();
  }

  void report(std::unique_lock<std::mutex>& lock) {
    reported_ = given_up_;
    const bool answers = !reported_;
    const std::string why = answers ? std::string() : why_;
    lock.unlock();
    if (on_change_) on_change_(answers, why);
    lock.lock();
  }

  void probe(std::unique_lock<std::mutex>& lock) {
    probing_ = true;
    lock.unlock();
    inner_->call(Find{}, [this](StoreResult result) { note(result, true, true); });
    lock.lock();
  }

  const std::function<void(bool, const std::string&)> on_change_;
  Doubts doubts_;
  const LogSink log_;
  DamageLog damage_;
  const std::string silence_;
  CallsUnderWay under_way_;
  OrphanedAttempts orphans_;
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<bool> in_trouble_{false};  ///< It failed, and no answer since proves that it works.
  std::atomic<bool> given_up_{false};
  std::mutex mutex_;  ///< Guards the rest; the atomics are written under it, too.
  std::condition_variable wake_;
  Breaker breaker_;
  std::string why_;
  std::vector<StoreCompletion> waiting_;  ///< Our thread refuses them.
  bool must_write_ = false;  ///< A call that would write failed: a read proves nothing.
  bool probing_ = false;
  bool reported_ = false;  ///< The last report to `on_change_`: true: given up.
  bool closing_ = false;
  std::thread thread_;
  std::unique_ptr<Store> inner_;  ///< Destroyed first: its completions use the others.
};

}  // namespace

std::unique_ptr<CircuitBreakerStore> make_circuit_breaker(std::unique_ptr<Store> inner,
                                                          BreakerRule rule) {
  return std::make_unique<CircuitBreaker>(std::move(inner), std::move(rule));
}

}  // namespace idem
