#include "library/engine.hpp"

#include "core/record/lease_end.hpp"
#include "library/misuse.hpp"
#include "workers/lifecycle.hpp"

#include <pthread.h>

#include <algorithm>

namespace idem::library {
namespace {

/// How late a renewal or the end of a wait may be; a lease is much longer.
constexpr Millis heartbeat_interval{50};

}  // namespace

ExchangeAction Serving::start() {
  const std::lock_guard lock(mutex_);
  return exchange_.start(MonotonicClock::now());
}

ExchangeAction Serving::on(ExchangeEvent event) {
  const std::lock_guard lock(mutex_);
  return exchange_.on(std::move(event), MonotonicClock::now());
}

void Serving::post(ExchangeEvent event) {
  // Notifies under the lock: after it the receiver may be gone.
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  wake_.notify_all();
}

std::optional<ExchangeEvent> Serving::next_event(MonotonicTime until) {
  std::unique_lock lock(mutex_);
  const auto has_event = [this] { return !events_.empty(); };
  if (until == MonotonicTime::max()) {
    wake_.wait(lock, has_event);
  } else {
    const auto left = std::max(until - MonotonicClock::now(), Millis{0});
    if (!wake_.wait_for(lock, left, has_event)) return std::nullopt;
  }
  ExchangeEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void Serving::sleep(Millis length) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, length, [] { return false; });
}

std::optional<Renew> Serving::heartbeat(MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  return exchange_.heartbeat(now);
}

void Serving::renewed(const std::expected<OwnerReply, StoreError>& result, MonotonicTime asked_at) {
  const std::lock_guard lock(mutex_);
  exchange_.renewed(result, asked_at);
}

Millis Serving::lease_left() const {
  const std::lock_guard lock(mutex_);
  return std::max(exchange_.lease_end() - MonotonicClock::now(), Millis{0});
}

bool Serving::owes_settlement() const {
  const std::lock_guard lock(mutex_);
  return exchange_.owes_settlement();
}

bool Serving::is_contradicted() const {
  const std::lock_guard lock(mutex_);
  return exchange_.is_contradicted();
}

// ---- waiters ----

void Awaited::add(const RecordId& id, const std::shared_ptr<Serving>& serving) {
  {
    const std::lock_guard lock(mutex_);
    waiting_[id].push_back(serving);
  }
  read(id);  // Registered first, then read: nothing in between is missed.
}

void Awaited::remove(const RecordId& id, const Serving& serving) {
  const std::lock_guard lock(mutex_);
  const auto group = waiting_.find(id);
  if (group == waiting_.end()) return;
  std::erase_if(group->second, [&](const auto& one) { return one.get() == &serving; });
  if (group->second.empty()) waiting_.erase(group);
}

void Awaited::changed(const RecordId& id) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.contains(id)) return;
  }
  read(id);
}

std::vector<RecordId> Awaited::awaited() {
  const std::lock_guard lock(mutex_);
  std::vector<RecordId> ids;
  for (const auto& [id, group] : waiting_) ids.push_back(id);
  return ids;
}

void Awaited::read(const RecordId& id) {
  ask(store_, Find{id}, [self = shared_from_this(), id](auto result) {
    Woken woken;
    if (!result) {
      woken.record = std::unexpected(std::move(result.error()));
    } else if (*result) {
      woken.record = std::make_shared<const Record>(std::move(**result));
    }
    std::vector<std::shared_ptr<Serving>> group;
    {
      const std::lock_guard lock(self->mutex_);
      if (const auto found = self->waiting_.find(id); found != self->waiting_.end())
        group = found->second;
    }
    for (const auto& one : group) one->post(woken);
  });
}

// ---- the serving thread's part ----

namespace {

ExchangeAction ask_store(Engine::Parts& parts, const std::shared_ptr<Serving>& serving,
                         const StoreCall& call) {
  parts.store->call(call, [serving, &parts](StoreResult result) {
    parts.note(result);
    serving->post(StoreAnswered{std::move(result)});
  });
  auto event = serving->next_event();
  // A read for a wait that is over may still come.
  while (!std::holds_alternative<StoreAnswered>(*event)) event = serving->next_event();
  return serving->on(std::move(*event));
}

ExchangeAction wait_for(Engine::Parts& parts, const std::shared_ptr<Serving>& serving,
                        const WaitFor& wait) {
  parts.awaited->add(wait.id, serving);
  ExchangeAction action = wait;
  while (std::holds_alternative<WaitFor>(action)) {
    auto event = serving->next_event(wait.until);
    action = serving->on(event ? std::move(*event) : ExchangeEvent(WaitOver{}));
  }
  parts.awaited->remove(wait.id, *serving);
  return action;
}

}  // namespace

bool Patience::lasts(Millis delay) {
  const MonotonicTime now = MonotonicClock::now();
  if (since_ == MonotonicTime{}) since_ = now;
  return now + delay <= since_ + limits::settle_wait_max;
}

std::optional<ExchangeAction> carry_out(Engine::Parts& parts,
                                        const std::shared_ptr<Serving>& serving,
                                        const ExchangeAction& action, Patience& patience) {
  if (const auto* asked = std::get_if<Ask>(&action)) {
    return ask_store(parts, serving, asked->call);
  }
  if (const auto* later = std::get_if<AskLater>(&action)) {
    if (!patience.lasts(later->delay)) return serving->on(ClientDeadline{});
    serving->sleep(later->delay);
    return serving->on(RetryDue{});
  }
  if (std::holds_alternative<Connect>(action)) return serving->on(UpstreamReady{});
  if (const auto* wait = std::get_if<WaitFor>(&action)) return wait_for(parts, serving, *wait);
  return std::nullopt;
}

}  // namespace idem::library

namespace idem {

using library::Serving;

// A compiler may assume that no reference is null, and drop the check: so the address is read from
// memory.
Engine::Parts& library::parts_of(std::string_view whose, Engine& engine) {
  Engine* volatile seen = &engine;
  if (seen == nullptr) {
    misused(std::string(whose) + ": the engine is null; make an idem::Engine first");
  }
  return engine.parts();
}

Engine::Parts::Parts(std::unique_ptr<Store> opened, EngineOptions given)
    : options(std::move(given)),
      store(std::move(opened)),
      awaited(std::make_shared<library::Awaited>(*store)) {
  options.log = library::log_or_stderr(std::move(options.log));
  store->watch(awaited);
  workers_ = workers::keep_lifecycle(*store, options.log, shard_);
  heartbeat_thread_ = std::thread([this] { run_heartbeats(); });
  settler_ = std::thread([this] { settle_owed(); });
}

Engine::Parts::~Parts() {
  if (const int at_work = life->at_work.load(); at_work != 0) {
    library::misused("~Engine: " + std::to_string(at_work) +
                     " of its PhasedGuards and Relays are still at work; declare the engine before "
                     "them, so that it is destroyed after them");
  }
  if (const int guards = life->guards.load(); guards != 0) {
    options.log(LogLevel::warning, "engine_before_its_guards",
                {{"guards", std::to_string(guards)},
                 {"what_to_do",
                  "declare the engine before its guards, so that it is destroyed "
                  "after them; from now on these answer 503"}});
  }
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    life->is_over = true;  // Nothing new is served while it waits.
    idle_.wait(lock, [this] { return busy_ == 0; });
  }
  transaction_threads.end();
  workers_->stop();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  settler_.join();
  heartbeat_thread_.join();
  store.reset();
}

void Engine::Parts::note(const StoreResult& result) {
  damage.look_at(result);
  log_lease_end(options.log, result);
}

void Engine::Parts::store_failed(const std::string& why) {
  const auto line = store_seen_.failed(MonotonicClock::now(), "transaction", why, false);
  if (!line) return;
  options.log(
      LogLevel::error, "store_error",
      {{"why", why}, {"failures", line->failures}, {"seconds", line->lasting.count() / 1'000}});
}

void Engine::Parts::store_answered() {
  const auto line = store_seen_.answered(MonotonicClock::now());
  if (!line) return;
  options.log(LogLevel::info, "store_recovered",
              {{"failures", line->failures}, {"seconds", line->lasting.count() / 1'000}});
}

void Engine::Parts::note_end(const Serving& serving) const {
  if (!serving.is_contradicted()) return;
  options.log(LogLevel::error, "answer_contradicts_event",
              {{"operation_ref", to_hex(serving.id().bytes)}});
}

void Engine::Parts::settle_later(std::shared_ptr<Serving> serving) {
  owed_count.fetch_add(1);
  {
    const std::lock_guard lock(mutex_);
    owed_.push_back(std::move(serving));
  }
  wake_.notify_all();
}

bool Engine::Parts::pause(std::unique_lock<std::mutex>& lock, Millis length) {
  return !wake_.wait_for(lock, length, [this] { return ending_; });
}

// One after the other: while the store is away, one question at a time is enough.
void Engine::Parts::settle_owed() {
  ::pthread_setname_np(::pthread_self(), "idem-settler");
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !owed_.empty(); });
    if (owed_.empty()) return;
    const auto serving = std::move(owed_.front());
    owed_.pop_front();
    lock.unlock();
    bool away = false;
    ExchangeAction action = serving->on(RetryDue{});
    while (const auto* asked = std::get_if<Ask>(&action)) {
      action = library::ask_store(*this, serving, asked->call);
    }
    const auto* later = std::get_if<AskLater>(&action);
    const Millis delay = later != nullptr ? later->delay : Millis{};
    lock.lock();
    if (later != nullptr) {
      away = true;
      owed_.push_back(serving);
    } else {
      owed_count.fetch_sub(1);
    }
    if (away && !pause(lock, delay)) return;
  }
}

void Engine::Parts::post_at(MonotonicTime when, std::weak_ptr<Serving> serving,
                            ExchangeEvent event) {
  const std::lock_guard lock(mutex_);
  timers_.emplace(when, Timer{std::move(serving), std::move(event)});
}

void Engine::Parts::run_heartbeats() {
  ::pthread_setname_np(::pthread_self(), "idem-heart");
  std::unique_lock lock(mutex_);
  while (pause(lock, library::heartbeat_interval)) {
    const MonotonicTime now = MonotonicClock::now();
    renew_due(now);
    post_due(now, lock);
  }
}

void Engine::Parts::renew_due(MonotonicTime now) {
  for (const auto& [unused, renewal] : renewals_) {
    if (now >= renewal.until) continue;
    const auto due = renewal.serving->heartbeat(now);
    if (!due) continue;
    ask(*store, *due,
        [serving = renewal.serving, now](const auto& result) { serving->renewed(result, now); });
  }
}

// Posts without the lock: an AsyncServing continues within post().
void Engine::Parts::post_due(MonotonicTime now, std::unique_lock<std::mutex>& lock) {
  std::vector<Timer> due;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    due.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }
  std::vector<std::shared_ptr<Serving>> late;
  for (const auto& [unused, renewal] : renewals_) {
    if (closing_ && now >= renewal.until) late.push_back(renewal.serving);
  }
  if (due.empty() && late.empty()) return;
  lock.unlock();
  for (auto& [serving, event] : due) {
    if (const auto still = serving.lock()) still->post(std::move(event));
  }
  for (const auto& serving : late) serving->overdue();
  due.clear();
  late.clear();
  lock.lock();
}

Engine::Parts::Busy::Busy(Parts& parts) : parts_(parts) {
  const std::lock_guard lock(parts_.mutex_);
  ++parts_.busy_;
}

// Notifies under the lock: the waiting destructor destroys all of this.
Engine::Parts::Busy::~Busy() {
  const std::lock_guard lock(parts_.mutex_);
  if (--parts_.busy_ == 0) parts_.idle_.notify_all();
}

Engine::Parts::Renewed::Renewed(Parts& parts, std::shared_ptr<Serving> serving, Millis run_max)
    : parts_(parts), serving_(serving.get()) {
  const std::lock_guard lock(parts_.mutex_);
  parts_.renewals_[serving_] = {std::move(serving), MonotonicClock::now() + run_max};
}

Engine::Parts::Renewed::~Renewed() {
  const std::lock_guard lock(parts_.mutex_);
  parts_.renewals_.erase(serving_);
}

namespace {

std::unique_ptr<Store> checked(std::unique_ptr<Store> store) {
  if (store) return store;
  library::misused(
      "Engine: the store is null; look at what open_store() returned before you move it in");
}

}  // namespace

Engine::Engine(std::unique_ptr<Store> store, EngineOptions options)
    : parts_(std::make_unique<Parts>(checked(std::move(store)), std::move(options))) {}

Engine::~Engine() = default;

Store& Engine::store() noexcept { return *parts_->store; }
Transactions* Engine::transactions() noexcept { return parts_->store->transactions(); }

}  // namespace idem
