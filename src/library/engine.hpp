#pragma once

#include "core/exchange/exchange.hpp"
#include "library/transaction_threads.hpp"
#include "metrics/outside.hpp"
#include "metrics/shard.hpp"
#include "store/damage_log.hpp"
#include "workers/runner.hpp"

#include <idem/guard.hpp>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace idem::library {

/// One request that a guard serves: its exchange, and the events for it from other threads. The
/// serving thread drives it; heartbeats and wake-ups come from other threads.
class Serving {
 public:
  Serving(const ExchangeSettings& settings, Reserve reserve)
      : exchange_(settings, std::move(reserve)) {}
  virtual ~Serving() = default;

  ExchangeAction start();
  ExchangeAction on(ExchangeEvent event);

  /// Adds an event. From any thread.
  virtual void post(ExchangeEvent event);
  /// Called if the engine ends and the handler has run for `run_max`.
  virtual void overdue() {}
  /// The next posted event; none if no event came before `until`.
  std::optional<ExchangeEvent> next_event(MonotonicTime until = MonotonicTime::max());

  void sleep(Millis length);

  std::optional<Renew> heartbeat(MonotonicTime now);
  void renewed(const std::expected<OwnerReply, StoreError>& result, MonotonicTime asked_at);
  Millis lease_left() const;
  bool owes_settlement() const;
  bool is_contradicted() const;
  const RecordId& id() const noexcept { return exchange_.id(); }  ///< Never changes.

 private:
  mutable std::mutex mutex_;
  Exchange exchange_;
  std::condition_variable wake_;
  std::deque<ExchangeEvent> events_;
};

/// Requests that wait for records. When the store notifies it of a change, it reads the record once
/// for all that wait for it. Owned by a shared_ptr.
class Awaited final : public Watcher, public std::enable_shared_from_this<Awaited> {
 public:
  explicit Awaited(Store& store) : store_(store) {}

  /// From now on posts Woken to `serving`, at least once.
  void add(const RecordId& id, const std::shared_ptr<Serving>& serving);
  void remove(const RecordId& id, const Serving& serving);

  void changed(const RecordId& id) noexcept override;
  std::vector<RecordId> awaited() override;

 private:
  void read(const RecordId& id);

  Store& store_;
  std::mutex mutex_;
  std::map<RecordId, std::vector<std::shared_ptr<Serving>>> waiting_;
};

/// How long a client waits for a store that does not answer.
class Patience {
 public:
  /// False: with another call after `delay` the client would wait too long.
  bool lasts(Millis delay);
  void renew() noexcept { since_ = {}; }

 private:
  MonotonicTime since_{};
};

/// The part of an engine that its guards share, so that either may be destroyed first.
struct EngineLife {
  std::atomic<bool> is_over = false;
  std::atomic<int> guards = 0;
  /// Guards and relays with threads that use the engine.
  std::atomic<int> at_work = 0;
};

/// The engine's parts. Aborts on a null reference, with `whose` in the message.
Engine::Parts& parts_of(std::string_view whose, Engine& engine);

/// Carries out one action that asks the store, waits or sleeps, and returns the next one. None: the
/// action is an answer, or the handler's turn.
std::optional<ExchangeAction> carry_out(Engine::Parts& parts,
                                        const std::shared_ptr<Serving>& serving,
                                        const ExchangeAction& action, Patience& patience);

}  // namespace idem::library

namespace idem {

struct Engine::Parts {
  Parts(std::unique_ptr<Store> store, EngineOptions options);
  ~Parts();

  /// §4: repeats the settlement that an answered request still owes, on a thread of the engine's.
  void settle_later(std::shared_ptr<library::Serving> serving);
  /// Logs what a reply says beside its answer: that a record is damaged, or that a lease ended.
  void note(const StoreResult& result);
  /// Whether transactions with a reserve can be made: few lines for many failures, and one at the
  /// end.
  void store_failed(const std::string& why);
  void store_answered();
  /// Logs an ended attempt whose stored answer contradicts a provider's event.
  void note_end(const library::Serving& serving) const;
  bool is_overloaded() const { return owed_count.load() >= limits::unsettled_attempts_max; }

  /// Posts `event` at `when` or a moment later, unless `serving` is gone by then.
  void post_at(MonotonicTime when, std::weak_ptr<library::Serving> serving, ExchangeEvent event);

  EngineOptions options;
  std::shared_ptr<library::EngineLife> life = std::make_shared<library::EngineLife>();
  DamageLog damage{[this](LogLevel level, std::string_view event, auto fields) {
    options.log(level, event, fields);
  }};
  std::unique_ptr<Store> store;
  std::shared_ptr<library::Awaited> awaited;
  library::TransactionThreads transaction_threads{};
  std::atomic<std::size_t> served_without_thread{0};

  /// Keeps the engine from ending while a guard serves.
  class Busy {
   public:
    explicit Busy(Parts& parts);
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Parts& parts_;
  };

  /// While it lives, the engine renews the lease of `serving`, for `run_max` at most.
  class Renewed {
   public:
    Renewed(Parts& parts, std::shared_ptr<library::Serving> serving, Millis run_max);
    ~Renewed();
    Renewed(const Renewed&) = delete;
    Renewed& operator=(const Renewed&) = delete;

   private:
    Parts& parts_;
    const library::Serving* serving_;
  };

 private:
  struct Renewal {
    std::shared_ptr<library::Serving> serving;
    MonotonicTime until;
  };
  struct Timer {
    std::weak_ptr<library::Serving> serving;
    ExchangeEvent event;
  };
  void run_heartbeats();
  void renew_due(MonotonicTime now);
  void post_due(MonotonicTime now, std::unique_lock<std::mutex>& lock);
  void settle_owed();
  /// Waits for `length`. False: the engine ends.
  bool pause(std::unique_lock<std::mutex>& lock, Millis length);

  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;  ///< Waits for the requests under way.
  bool ending_ = false;
  std::size_t busy_ = 0;  ///< Guards' requests under way.
  std::condition_variable idle_;
  std::map<const library::Serving*, Renewal> renewals_;
  std::multimap<MonotonicTime, Timer> timers_;
  std::deque<std::shared_ptr<library::Serving>> owed_;
  std::atomic<std::size_t> owed_count{0};
  metrics::Shard shard_;
  metrics::Availability store_seen_;
  std::unique_ptr<workers::Runner> workers_;
  std::thread heartbeat_thread_;
  std::thread settler_;
};

}  // namespace idem
