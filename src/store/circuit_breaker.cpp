#include "store/circuit_breaker.hpp"

#include "core/record/lease_end.hpp"
#include "store/damage_log.hpp"
#include "store/verb_traits.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace idem {
namespace {

/// Of the verbs by which a reservation comes and goes.
std::optional<Token> token_of(const StoreCall& call) noexcept {
  if (const auto* reserve = std::get_if<Reserve>(&call)) return reserve->token;
  if (const auto* accept = std::get_if<Accept>(&call)) return accept->as.token;
  if (const auto* claim = std::get_if<Claim>(&call)) return claim->token;
  if (const auto* release = std::get_if<Release>(&call)) return release->attempt.token;
  return std::nullopt;
}

/// Journals are tables of their own: whether they work says nothing about records, and clients must
/// not suffer from them.
bool is_of_a_journal(const StoreCall& call) noexcept {
  return std::holds_alternative<AppendLine>(call) || std::holds_alternative<ReadLines>(call) ||
         std::holds_alternative<ListJournals>(call) || std::holds_alternative<DropJournal>(call);
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

class CircuitBreaker final : public CircuitBreakerStore {
 public:
  CircuitBreaker(std::unique_ptr<Store> inner, BreakerRule rule)
      : on_change_(std::move(rule.on_change)),
        log_(std::move(rule.log)),
        damage_(log_),
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
    if (is_of_a_journal(what)) return inner_->call(std::move(what), std::move(done));
    const bool asks = traits_of(what).asks_for_a_record;
    const auto token = token_of(what);
    if (given_up_.load(std::memory_order_acquire) && traits_of(what).may_be_refused &&
        !(asks && doubts_.has(*token))) {
      return refuse(std::move(done));
    }
    const bool reads = traits_of(what).only_reads;
    inner_->call(std::move(what),
                 [this, asks, reads, token, done = std::move(done)](StoreResult result) mutable {
                   if (token) note_token(asks, *token, result);
                   damage_.look_at(result);
                   log_lease_end(log_, result);
                   note(result, false, reads);
                   done(std::move(result));
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
        why_ = result.error().detail;
        must_write_ |= !reads;
        in_trouble_.store(true, std::memory_order_release);
        given_up_.store(breaker_.is_on_trial(), std::memory_order_release);
      } else if (!must_write_ || has_written(result)) {
        breaker_.succeeded();
        must_write_ = false;
        in_trouble_.store(false, std::memory_order_release);
        given_up_.store(false, std::memory_order_release);
      } else if (is_probe) {
        given_up_.store(false, std::memory_order_release);
      }
      if (!is_probe && given_up_ == reported_) return;  // Nothing for the thread to do.
    }
    wake_.notify_one();
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
      if (!waiting_.empty()) {
        answer(lock);
      } else if (closing_) {
        return;
      } else if (reported_ != given_up_) {
        report(lock);
      } else if (!given_up_ || probing_) {
        wake_.wait(lock);
      } else if (const auto now = MonotonicClock::now(); breaker_.is_open(now)) {
        wake_.wait_for(lock, breaker_.open_until() - now);
      } else {
        probe(lock);
      }
    }
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
