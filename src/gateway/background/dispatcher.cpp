#include "gateway/background/dispatcher.hpp"

#include "core/exchange/backoff.hpp"
#include "gateway/background/dispatch_places.hpp"
#include "gateway/background/dispatch_turns.hpp"
#include "gateway/background/search_index.hpp"
#include "gateway/forward.hpp"
#include "gateway/keyed/async_request.hpp"
#include "gateway/keyed/dispatch.hpp"
#include "gateway/keyed/exchange_rules.hpp"
#include "gateway/keyed/heartbeat.hpp"
#include "gateway/scope_shares.hpp"
#include "gateway/upstream_source.hpp"
#include "loop/store_link.hpp"

#include <idem/assert.hpp>
#include <idem/crash_point.hpp>
#include <idem/fingerprint.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <atomic>
#include <set>

namespace idem::gateway {
namespace {

/// From 0 to 1.
double dice() {
  std::array<std::uint8_t, 2> bytes{};
  random_bytes(bytes);
  return static_cast<double>(bytes[0] * 256 + bytes[1]) / 65'536;
}

/// A claimed request on its way.
struct Work {
  Claimed claimed;
  SharedSettings settings;
  std::unique_ptr<RestoredRequest> request;
  MonotonicTime claimed_at;  ///< Read before the claim was asked.
  Millis lease;
};

class LoopDispatcher final : public Dispatcher, Timed {
 public:
  LoopDispatcher(Loop& loop, GatewayShared& shared, SharedSettings settings)
      : Timed(loop),
        shared_(shared),
        observer_(shared.observing),
        settings_(std::move(settings)),
        pool_(loop, settings_->upstream,
              {settings_->connect_timeout, settings_->upstream_keep_alive_idle,
               settings_->upstream_tls}) {}

  void wake() noexcept override {
    if (woken_.exchange(true)) return;
    loop_.post([this] {
      // There is a pending request; it may be resting, for no longer than that.
      often_until_ = MonotonicClock::now() + limits::async_rest_max;
      look_at_ = std::min(look_at_, MonotonicClock::now() + limits::async_claim_interval);
      look();
    });
  }

  Millis look_again() const noexcept override { return Millis(look_again_.load()); }

  void use(SharedSettings settings) override {
    loop_.post([this, settings = std::move(settings)]() mutable {
      settings_ = std::move(settings);
      look();
    });
  }

  void drain() override {
    draining_.store(true);
    loop_.post([this] {
      for (http::Wire* wire : endless_) {
        if (wire != nullptr) wire->cancel();
      }
      while (auto held = turns_.overdue(MonotonicTime::max())) {
        put_back(held->claimed, "draining", Millis{});
      }
      note_drained();
    });
  }
  bool drained() const noexcept override { return drained_.load(); }

 private:
  void tick(MonotonicTime now) override {
    if (now < look_at_) return;
    const auto& routes = settings_->routes.all();
    const bool any = std::ranges::any_of(routes, [](const Route& one) { return one.ever_async(); });
    const bool often = any || now < often_until_;
    const Millis interval =
        often ? limits::async_claim_interval : limits::async_claim_interval_idle;
    look_at_ = now + interval;
    loop_.post([this] { look(); });
  }

  void look() {
    woken_.store(false);
    const MonotonicTime now = MonotonicClock::now();
    if (now - put_back_since_ >= Millis(1000)) {
      put_back_since_ = now;
      put_back_ = 0;
    }
    while (auto held = turns_.overdue(now)) put_back_busy(*held);
    start_held();
    look_more_ = true;
    if (claiming_ || draining_.load()) return;
    claiming_ = true;
    loop_.spawn(claim_all());
  }

  // One claim at a time, so that no more is claimed than there is room for.
  Task<void> claim_all() {
    while (std::exchange(look_more_, false)) {
      bool more = may_claim();
      while (more) {
        more = co_await claim_one();
        if (more) more = may_claim();
      }
    }
    claiming_ = false;
    note_drained();
  }

  bool may_reach() const {
    if (draining_.load() || breaker_.is_open(MonotonicClock::now())) return false;
    // One request tries an upstream that could not be reached.
    return !breaker_.is_on_trial() || places_.taken() == 0;
  }
  bool all_taken() const { return places_.taken() >= limits::async_running_max; }

  // Also where no place is free: only claimed requests take turns.
  bool may_claim() const {
    const std::size_t put_back_max =
        all_taken() ? limits::async_put_back_full_max : limits::async_put_back_max;
    return may_reach() && put_back_ < put_back_max;
  }

  /// Covers the sending on every route, because a claim does not know its route.
  Millis lease() const {
    Millis longest{0};
    for (const Route& route : settings_->routes.all()) longest = std::max(longest, route.lease);
    return longest;
  }

  Task<bool> claim_one() {
    const MonotonicTime asked_at = MonotonicClock::now();
    const Millis lease_time = lease();
    StoreCall claim = Claim{random_token(), settings_->owner, lease_time, false};
    auto asking = ask_store(loop_, shared_.store, claim);
    auto result = co_await asking;
    count_failure(observer_.shard(), result);
    // In doubt: a request that may be claimed is not dispatched, and free again after its lease. A
    // damaged one is put off, and others may be due. If the list of them is damaged, none is found.
    if (!result) {
      const StoreError& error = result.error();
      const bool is_damaged = error.code == StoreError::Code::damaged && error.record;
      put_back_ += is_damaged ? 1 : 0;
      co_return is_damaged;
    }
    auto& claimed = std::get<std::optional<Claimed>>(*result);
    if (!claimed) co_return false;
    crash_point(CrashPoint::claimed);
    Work work{std::move(*claimed), settings_, nullptr, asked_at, lease_time};
    auto request = RestoredRequest::read(work.claimed, shared_.store.identity(), *work.settings);
    if (!request) {
      observer_.log(LogLevel::warning, "async_request_unable",
                    {{"operation_ref", to_hex(work.claimed.id.bytes)},
                     {"operation", work.claimed.operation},
                     {"reason", request.error()}});
      ++put_back_;
      constexpr Millis longest = limits::async_unable_rest;
      put_back(work.claimed, "request_unable", backoff(1, longest, longest, dice()));
      co_return true;
    }
    work.request = std::move(*request);
    start_or_hold(std::move(work));
    co_return true;
  }

  // Requests of one tenant start in the order of their claims.
  void start_or_hold(Work work) {
    if (draining_.load()) {
      put_back(work.claimed, "draining", Millis{});
      return;
    }
    const Route& route = work.request->route();
    const std::string queue = DispatchPlaces::name_of(route);
    const std::string scope = work.claimed.scope;
    const bool is_next = may_reach() && !all_taken() && !turns_.holds_any(queue, scope);
    if (is_next && places_.take(route, scope)) {
      loop_.spawn(run(std::move(work)));
      return;
    }
    // The rest of its lease must cover the sending.
    const Millis time =
        std::min<Millis>(limits::async_held_time_max, (work.lease - route.upstream_timeout) / 2);
    auto rejected = turns_.hold(queue, scope, std::move(work), MonotonicClock::now() + time);
    if (rejected) {
      ++put_back_;
      put_back_busy(*rejected);
      return;
    }
    look_in(time);
    start_held();
  }

  void start_held() {
    while (may_reach() && !all_taken()) {
      auto work = turns_.next([this](const Work& one) {
        return places_.taken_by(one.request->route(), one.claimed.scope);
      });
      if (!work) return;
      const bool taken = places_.take(work->request->route(), work->claimed.scope);
      IDEM_ASSERT(taken);
      loop_.spawn(run(std::move(*work)));
    }
  }

  void put_back_busy(const Work& work) {
    const Route& route = work.request->route();
    const auto places = std::min(route.async_running_max, route.async_tenant_max);
    const Millis each(look_again_.load() / static_cast<Millis::rep>(places));
    const std::string tenant = DispatchPlaces::name_of(route) + '\n' + work.claimed.scope;
    put_back(work.claimed, "route_busy",
             backlogs_.rest(tenant, each, MonotonicClock::now(), dice()));
  }

  // If this call is lost, the lease's end does the same.
  void put_back(const Claimed& claimed, std::string why, Millis rest) {
    ask(shared_.store,
        Release{claimed.id, claimed.attempt, ReleaseBasis::proven, std::move(why), rest},
        [](auto) {});
    look_in(rest);
  }

  void look_in(Millis rest) { look_at_ = std::min(look_at_, MonotonicClock::now() + rest); }

  Task<void> run(Work work) {
    const Route& route = work.request->route();
    const RecordId id = work.claimed.id;
    const Millis rest = places_.rest(id, dice());
    ExchangeSettings rules = exchange_rules(route, work.lease);
    rules.rest = rest;
    Observation seen(observer_);
    seen.trace(work.request->head(), route, Observation::Origin::stored);
    const auto trace = seen.trace().outgoing();
    if (trace && trace->parent.is_sampled) rules.trace = traceparent_of(trace->parent);
    auto exchange = std::make_shared<Exchange>(rules, work.claimed, work.lease);
    Dispatch dispatch(UpstreamSource(pool_), route, observer_);
    std::string head;  // As long as the request may still be sent.
    bool released = false;
    {
      const Heartbeat heartbeat(loop_, shared_.store, exchange);
      released = co_await carry_out(work, *exchange, seen, dispatch, head);
    }
    const MonotonicTime ended_at = MonotonicClock::now();
    // Also of an answer that is not kept: the work must not be cut at its head. The outcome is
    // settled, so it delays no other request for as long as there is room to read beside them.
    const bool has_rest = dispatch.has_rest();
    const bool beside = has_rest && unread_.take(work.claimed.scope);
    if (has_rest && !beside) co_await read_out(dispatch);
    places_.give_back(route, work.claimed.scope);
    if (released) {
      places_.released(id);
      look_again_.store(rest.count());
      look_in(rest);
    } else {
      places_.ended(id);
      const auto took = ended_at - work.claimed_at;
      look_again_.store((look_again_.load() * 7 + took.count()) / 8);
    }
    look();
    if (beside) {
      co_await read_out(dispatch);
      unread_.give_back(work.claimed.scope);
    }
    note_drained();
  }

  /// True when it was released.
  Task<bool> carry_out(const Work& work, Exchange& exchange, Observation& seen, Dispatch& dispatch,
                       std::string& head) {
    const Route& route = work.request->route();
    bool released = false;
    ExchangeAction action = exchange.start(work.claimed_at);
    for (;;) {
      if (auto* asked = std::get_if<Ask>(&action)) {
        released = released || std::holds_alternative<Release>(asked->call);
        seen.asking(asked->call);
        auto findable = shared_.search->in_ending(*work.settings, asked->call);
        auto asking = ask_store(loop_, shared_.store, asked->call);
        auto result = co_await asking;
        seen.answered(result, work.claimed.scope);
        if (has_ended(result)) shared_.search->add(work.claimed.id, route, std::move(findable));
        action = exchange.on(StoreAnswered{std::move(result)}, MonotonicClock::now());
      } else if (auto* later = std::get_if<AskLater>(&action)) {
        co_await loop_.sleep(later->delay);  // Without an end (§4).
        action = exchange.on(RetryDue{}, MonotonicClock::now());
      } else if (std::holds_alternative<Connect>(action)) {
        seen.connecting();
        auto event = co_await dispatch.connect();
        seen.connected(event);
        note_reached(event);
        action = exchange.on(std::move(event), MonotonicClock::now());
      } else if (auto* send = std::get_if<Send>(&action)) {
        seen.sending();
        auto event = co_await send_request(work, seen, dispatch, *send, head);
        seen.sent(event);
        note_reached(event);
        action = exchange.on(std::move(event), MonotonicClock::now());
      } else {
        break;  // Its client reads the record.
      }
    }
    const auto* answer = std::get_if<AnswerClient>(&action);
    seen.finished(exchange, route, answer != nullptr ? answer->answer.status : 0);
    co_return released;
  }

  Task<void> read_out(Dispatch& dispatch) {
    const bool endless = dispatch.is_endless();
    if (endless && draining_.load()) co_return;
    http::Wire* const wire = endless ? &dispatch.call().wire() : nullptr;
    endless_.insert(wire);
    co_await dispatch.read_out([this] { return draining_.load(); });
    endless_.erase(endless_.find(wire));
  }

  Task<ExchangeEvent> send_request(const Work& work, Observation& seen, Dispatch& dispatch,
                                   const Send& send, std::string& head) {
    const auto& request = *work.request;
    head.clear();
    append_forwarded_head(head, request.head(), *work.settings, ForwardedKey::by_settings,
                          seen.trace().outgoing());
    append_attempt_fields(head, send.attempt, send.id);
    append_content_length(head, request.body().size());
    head += "\r\n";
    const http::UpstreamCall::InterimSink ignore = [](const http::ResponseHead&) -> Task<void> {
      co_return;
    };
    auto event =
        co_await dispatch.send(request.head().method, head, request.body(), send.not_after, ignore);
    co_return event;
  }

  void note_reached(const ExchangeEvent& event) {
    if (std::holds_alternative<UpstreamNotReached>(event)) {
      breaker_.failed(MonotonicClock::now());
    } else {
      breaker_.succeeded();
    }
  }

  void note_drained() {
    const bool idle =
        !claiming_ && places_.taken() == 0 && turns_.held() == 0 && unread_.taken() == 0;
    if (draining_.load() && idle) drained_.store(true);
  }

  GatewayShared& shared_;
  Observer observer_;
  SharedSettings settings_;
  http::UpstreamPool pool_;
  std::multiset<http::Wire*> endless_;  ///< They are cut when the gateway stops.
  DispatchPlaces places_;
  ScopeShares unread_{limits::async_unread_max};  ///< Answers that are read without a place.
  DispatchTurns<Work> turns_;
  DispatchBacklogs backlogs_;
  Breaker breaker_{{.pause_first = limits::async_rest_first, .pause_max = limits::async_rest_max}};
  MonotonicTime look_at_{};
  MonotonicTime often_until_{};
  std::size_t put_back_ = 0;
  MonotonicTime put_back_since_{};
  bool claiming_ = false;
  bool look_more_ = false;
  std::atomic<bool> woken_{false};
  std::atomic<Millis::rep> look_again_{1000};
  std::atomic<bool> draining_{false};
  std::atomic<bool> drained_{false};
};

}  // namespace

std::unique_ptr<Dispatcher> make_dispatcher(Loop& loop, GatewayShared& shared,
                                            SharedSettings settings) {
  return std::make_unique<LoopDispatcher>(loop, shared, std::move(settings));
}

}  // namespace idem::gateway
