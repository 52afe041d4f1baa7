#include "gateway/keyed/keyed.hpp"

#include "core/exchange/answers.hpp"
#include "core/json/rpc.hpp"
#include "core/record/store_clock.hpp"
#include "gateway/background/dispatcher.hpp"
#include "gateway/forward.hpp"
#include "gateway/kept_head.hpp"
#include "gateway/keyed/answers_under_way.hpp"
#include "gateway/keyed/async_request.hpp"
#include "gateway/keyed/dispatch.hpp"
#include "gateway/keyed/explained_fingerprint.hpp"
#include "gateway/keyed/heartbeat.hpp"
#include "gateway/keyed/keyed_exchange.hpp"
#include "gateway/keyed/reserve.hpp"
#include "gateway/keyed/rpc_answer.hpp"
#include "gateway/keyed/waiters.hpp"
#include "gateway/passthrough/stream_body.hpp"
#include "loop/store_link.hpp"

#include <idem/console_limits.hpp>
#include <idem/crash_point.hpp>

#include <functional>

namespace idem::gateway {
namespace {

/// §4: an owner that could not reach the store keeps trying for as long as its process lives, also
/// after its client got 503 or 504.
Task<void> settle_owed(Loop& loop, GatewayShared& shared, std::shared_ptr<Exchange> exchange,
                       Observer& observer, SharedSettings settings, const Route& route) {
  metrics::Shard& shard = observer.shard();
  shared.unsettled.fetch_add(1);
  ExchangeAction action = exchange->on(RetryDue{}, MonotonicClock::now());
  while (!std::holds_alternative<Done>(action)) {
    if (auto* asked = std::get_if<Ask>(&action)) {
      auto findable = shared.search->in_ending(*settings, asked->call);
      auto asking = ask_store(loop, shared.store, asked->call);
      auto result = co_await asking;
      count_failure(shard, result);
      if (has_ended(result)) shared.search->add(exchange->id(), route, std::move(findable));
      action = exchange->on(StoreAnswered{std::move(result)}, MonotonicClock::now());
    } else if (auto* later = std::get_if<AskLater>(&action)) {
      co_await loop.sleep(later->delay);
      action = exchange->on(RetryDue{}, MonotonicClock::now());
    } else {
      break;  // The client has had its answer.
    }
  }
  if (exchange->is_contradicted()) Observation::contradicted(observer, exchange->id());
  shared.unsettled.fetch_sub(1);
}

/// A misuse, with all that its comparison reads.
struct Misuse {
  SharedSettings settings;
  const Route* route;  ///< Of these settings.
  std::unique_ptr<KeptHead> head;
  std::string body;
  RecordId id;
  std::uint64_t number;  ///< Among the retries.
};

Task<void> compare_misuse(Loop& loop, GatewayShared& shared, Misuse misuse,
                          metrics::Retries& retries) {
  StoreCall find = Find{misuse.id};
  auto asking = ask_store(loop, shared.store, find);
  const auto found = co_await asking;
  if (!found) co_return;
  const auto& record = std::get<std::optional<Record>>(*found);
  if (!record) co_return;
  if (record->stored_request &&
      record->stored_request->size() > limits::misuse_compared_bytes_max) {
    retries.differ(misuse.number, {},
                   "The stored request is too large to be compared beside others: explain does.");
    co_return;
  }
  auto compared =
      compared_parts(misuse.head->head(), misuse.body, *record, shared.store.identity(),
                     *misuse.settings, *misuse.route, limits::misuse_compared_bytes_max);
  retries.differ(misuse.number, std::move(compared.differences), std::move(compared.why));
}

/// Frees its memory, too: an assigned-to string would keep its own, so the body is moved out.
void drop_body(http::ReceivedBody& body, http::SpillSpace& spill) {
  const http::ReceivedBody dropped(std::move(body));
  body = http::ReceivedBody(spill);
}

class KeyedDriver {
 public:
  KeyedDriver(http::ServerStream& client, http::UpstreamPool& pool, GatewayShared& shared,
              const GatewaySettings& settings, const Route& route, KeyedRequest request,
              std::shared_ptr<Exchange> exchange, bool has_body)
      : client_(client),
        shared_(shared),
        settings_(settings),
        route_(route),
        request_(std::move(request)),
        exchange_(std::move(exchange)),
        heartbeat_(client.loop(), shared.store, exchange_),
        dispatch_({pool, client, settings, route}, route, request_.seen.observer()),
        has_body_(has_body) {}

  /// The bytes of a JSON-RPC call's id: a replay gets it.
  void answer_rpc_under(std::string id) { rpc_id_ = std::move(id); }

  Task<void> run() {
    ExchangeAction action = exchange_->start(MonotonicClock::now());
    for (;;) {
      if (auto* asked = std::get_if<Ask>(&action)) {
        request_.seen.asking(asked->call);
        asked_at_ = uptime();
        auto findable = shared_.search->in_ending(settings_, asked->call);
        auto asking = ask_store(client_.loop(), shared_.store, asked->call);
        auto result = co_await asking;
        request_.seen.answered(result, request_.scope);
        keep_until_ = replayed_until(result, asked_at_);
        if (has_ended(result)) {
          shared_.search->add(exchange_->id(), route_, std::move(findable));
        }
        index_request(result);
        if (is_pending(result)) shared_.dispatcher->wake();
        action = exchange_->on(StoreAnswered{std::move(result)}, MonotonicClock::now());
      } else if (auto* later = std::get_if<AskLater>(&action)) {
        action = co_await ask_later(later->delay);
      } else if (std::holds_alternative<Connect>(action)) {
        auto event = co_await connect();
        action = exchange_->on(std::move(event), MonotonicClock::now());
      } else if (auto* send = std::get_if<Send>(&action)) {
        sent_ = true;
        request_.seen.sending();
        auto event = co_await send_request(*send);
        request_.seen.sent(event);
        waiting_since_ = MonotonicTime{};  // Waiting for the settling write is counted anew.
        action = exchange_->on(std::move(event), MonotonicClock::now());
      } else if (auto* wait = std::get_if<WaitFor>(&action)) {
        auto event = co_await wait_for(*wait);
        action = exchange_->on(std::move(event), MonotonicClock::now());
        if (std::holds_alternative<WaitFor>(action)) continue;
        auto refusal = co_await request_.authority->check_again();
        if (refusal) {  // This caller may no longer learn the attempt's outcome.
          waiter_.reset();
          request_.seen.refused(refusal->status);
          co_await client_.answer(*refusal);
          co_return;
        }
      } else if (auto* answer = std::get_if<AnswerClient>(&action)) {
        if (answer->answer.answers_rpc && !rpc_id_.empty()) put_rpc_id(answer->answer, rpc_id_);
        prepare(answer->answer);
        if (keep_until_ && request_.replay_name) {
          co_await answer_and_keep(std::move(answer->answer));
          co_return;
        }
        // A slow reader must not hold the file.
        const bool has_rest = dispatch_.has_rest();
        compare_beside();
        if (!has_rest) drop_body();
        waiter_.reset();  // Nor a waiter's place.
        // A request behind this one on the connection would wait for what the upstream still sends.
        if (dispatch_.is_unread()) client_.close_after();
        co_await client_.answer(answer->answer);
        if (has_rest) co_await read_out();
        co_return;
      } else if (auto* stream = std::get_if<StreamThrough>(&action)) {
        request_.seen.finished(*exchange_, route_, stream->head.status);
        co_await stream_through(stream->head);
        co_return;
      } else {
        co_return;
      }
    }
  }

 private:
  /// Until when the answer to this reserve cannot change: counted from before it was asked.
  static std::optional<Millis> replayed_until(const StoreResult& result, Millis asked_at) {
    const auto* outcome = result ? std::get_if<ReserveOutcome>(&*result) : nullptr;
    const auto* replay = outcome ? std::get_if<Replay>(outcome) : nullptr;
    if (replay == nullptr || !replay->response.body_stored) return std::nullopt;
    return asked_at + std::min<Millis>(replay->expires_in, limits::replay_cache_time_max);
  }

  static bool is_pending(const StoreResult& result) {
    const auto* outcome = result ? std::get_if<ReserveOutcome>(&*result) : nullptr;
    return outcome != nullptr && std::holds_alternative<Pending>(*outcome);
  }

  /// Where this request has won an attempt, or is stored. Before the sending, so that an operator
  /// finds it also if this process dies; nothing waits for it.
  void index_request(const StoreResult& result) {
    if (!settings_.search || !result) return;
    const auto* outcome = std::get_if<ReserveOutcome>(&*result);
    if (outcome == nullptr) return;
    const auto* execute = std::get_if<Execute>(outcome);
    const auto* pending = std::get_if<Pending>(outcome);
    if (execute == nullptr && pending == nullptr) return;
    // The values of one that was released are there: retries without an end would not be.
    if (execute != nullptr && execute->again) return;
    if (pending != nullptr && !shared_.search->is_new(pending->id)) return;
    auto findable = std::move(request_.findable);
    if (has_body_) {
      findable = shared_.search->in_request(settings_, request_.seen.trace_id(client_.head()),
                                            request_.body.bytes());
    }
    shared_.search->add(execute != nullptr ? execute->id : pending->id, route_,
                        std::move(findable));
  }

  /// For an answer that is about to go.
  void prepare(WireAnswer& answer) {
    if (exchange_->owes_settlement()) {
      client_.loop().spawn(settle_owed(client_.loop(), shared_, exchange_, request_.seen.observer(),
                                       request_.settings, route_));
    }
    if (!admit(answer)) {
      answer =
          overloaded_answer("Too many stored answers are on their way to this caller already.");
      keep_until_.reset();
    }
    request_.seen.ran_in(answer.ran_in);
    request_.seen.finished(*exchange_, route_, answer.status);
  }

  /// False: the answer can be asked for again, and there is no room to hold it for a client that
  /// may read slowly.
  bool admit(WireAnswer& answer) {
    if (answer.body_bytes().size() < limits::answer_counted_bytes_min) return true;
    const std::string scope = bounded_scope(settings_.scope, request_.scope);
    if (!sent_) return shared_.answers->admit(exchange_->id(), scope, answer);
    shared_.answers->admit_anyhow(exchange_->id(), scope, answer);
    return true;
  }

  void drop_body() {
    gateway::drop_body(request_.body, shared_.spill);
    has_body_ = false;
  }

  /// For the operator who looks for the client that errs; nobody waits for it.
  void compare_beside() {
    const auto misuse = request_.seen.misuse();
    if (!misuse || !has_body_ || request_.body.size() > limits::misuse_compared_bytes_max) return;
    const auto& head = client_.head();
    if (KeptHead::bytes_of(head) > limits::misuse_compared_bytes_max) return;
    if (!request_.seen.observer().may_compare()) return;
    client_.loop().spawn_beside(
        compare_misuse(client_.loop(), shared_,
                       {request_.settings, &route_, std::make_unique<KeptHead>(head),
                        std::string(request_.body.bytes()), exchange_->id(), *misuse},
                       request_.seen.observer().retries()));
  }

  Task<void> answer_and_keep(WireAnswer answer) {
    const auto shared = std::make_shared<const WireAnswer>(std::move(answer));
    request_.replays->put(*request_.replay_name, {shared, exchange_->id(), *keep_until_});
    drop_body();
    co_await client_.answer(*shared);
  }

  Task<ExchangeAction> ask_later(Millis delay) {
    const MonotonicTime now = MonotonicClock::now();
    // From the first call on, which the store may not have answered for long.
    if (waiting_since_ == MonotonicTime{}) waiting_since_ = now - (uptime() - asked_at_);
    if (now + delay > waiting_since_ + limits::settle_wait_max) {
      co_return exchange_->on(ClientDeadline{}, now);
    }
    co_await client_.loop().sleep(delay);
    co_return exchange_->on(RetryDue{}, MonotonicClock::now());
  }

  // Only its fingerprint was needed: this request will not be sent.
  Task<ExchangeEvent> wait_for(const WaitFor& wait) {
    drop_body();
    if (!waiter_) {
      waiter_.emplace(shared_.waiters, client_, wait.id,
                      bounded_scope(settings_.scope, request_.scope));
    }
    request_.seen.trace().begin(Observation::Phase::wait);
    auto event = co_await waiter_->wait(wait.until);
    request_.seen.trace().end(Observation::Phase::wait);
    co_return event;
  }

  Task<ExchangeEvent> connect() {
    request_.seen.connecting();
    auto event = co_await dispatch_.connect();
    request_.seen.connected(event);
    co_return event;
  }

  Task<ExchangeEvent> send_request(const Send& send) {
    head_.clear();
    append_forwarded_head(head_, client_.head(), settings_, ForwardedKey::by_settings,
                          request_.seen.trace().outgoing());
    append_attempt_fields(head_, send.attempt, send.id);
    append_content_length(head_, request_.body.bytes().size());
    head_ += "\r\n";
    auto on_interim = [this](const http::ResponseHead& head) { return pass_interim(head); };
    http::UpstreamCall::InterimSink sink(on_interim);
    const std::string_view body = request_.body.bytes();
    auto event = co_await dispatch_.send(client_.head().method, head_, body, send.not_after, sink);
    co_return event;
  }

  Task<void> pass_interim(const http::ResponseHead& head) {
    const UpstreamAnswered interim = end_to_end(head);
    co_await client_.interim(interim.answer);
  }

  // The completion is durable, so the client may have bytes. An answer that the upstream breaks off
  // is cut, and a retry learns that the answer was not kept.
  Task<void> stream_through(const WireAnswer& head) {
    auto& call = dispatch_.call();
    call.wire().no_deadline();
    // A stream may last for days: do not keep the request so long.
    if (!call.answered_while_sending()) drop_body();
    const auto framing = call.head().framing;
    const http::ServerStream::StreamFraming length{framing, call.head().content_length};
    const http::ServerStream::StreamStart nothing_yet{};
    bool sent = co_await client_.begin_stream(head, length, nothing_yet);
    if (sent) sent = co_await send_begun();
    StreamEnd end = StreamEnd::client_left;
    if (sent) end = co_await stream_body(client_, call, route_.upstream_timeout);
    if (end == StreamEnd::stopped) co_return;
    if (end == StreamEnd::broken) {
      dispatch_.broke_off();
      co_return;
    }
    co_await read_out();
  }

  // Also without a client: the gateway does not cancel dispatched work.
  Task<void> read_out() {
    if (client_.aborted()) client_.reset();
    const bool endless = dispatch_.is_endless();
    if (endless && client_.draining()) co_return;
    const http::ServerStream::CutAtDrain cut(client_, endless ? &dispatch_.call().wire() : nullptr);
    co_await dispatch_.read_out([this] { return client_.draining(); });
  }

  // In slices, because each has its time: a slow reader is served, one that has stopped is not.
  Task<bool> send_begun() {
    const std::string begun = dispatch_.take_begun_body();
    std::string_view rest = begun;
    bool sent = true;
    while (sent && !rest.empty()) {
      const auto slice = rest.substr(0, limits::write_slice_bytes);
      rest.remove_prefix(slice.size());
      sent = co_await client_.stream_piece(slice);
    }
    co_return sent;
  }

  http::ServerStream& client_;
  GatewayShared& shared_;
  const GatewaySettings& settings_;
  const Route& route_;
  KeyedRequest request_;
  std::shared_ptr<Exchange> exchange_;
  Heartbeat heartbeat_;
  Dispatch dispatch_;
  std::optional<Waiter> waiter_;
  std::string head_;
  std::string rpc_id_;  ///< Empty: a replay goes out as it is stored.
  Millis asked_at_{};   ///< By uptime(): when the store was asked last.
  MonotonicTime waiting_since_{};
  bool has_body_;                     ///< False: nothing needs it any more.
  bool sent_ = false;                 ///< The answer is this request's own.
  std::optional<Millis> keep_until_;  ///< The answer is a replay, and may be kept so long.
};

/// For a large body: canonicalised and digested on another thread, while the loop serves others.
Task<std::expected<Reserve, http::Refusal>> reserve_beside(http::ServerStream& client,
                                                           GatewayShared& shared,
                                                           const GatewaySettings& settings,
                                                           const Route& route,
                                                           const KeyedRequest& request) {
  std::function<std::expected<Reserve, http::Refusal>()> work = [&client, &shared, &settings,
                                                                 &route, &request] {
    return make_reserve(client.head(), request.parts(), shared.store.identity(), settings, route);
  };
  auto digesting = run_offloaded(client.loop(), *shared.digesting, work, request.scope);
  auto reserve = co_await digesting;
  co_return reserve;
}

}  // namespace

Task<void> serve_keyed(http::ServerStream& client, http::UpstreamPool& pool, GatewayShared& shared,
                       const GatewaySettings& settings, const Route& route, KeyedRequest& request) {
  std::expected<Reserve, http::Refusal> reserve;
  auto& trace = request.seen.trace();
  trace.begin(Observation::Phase::fingerprint);
  auto here = make_reserve_within(limits::digest_on_loop_bytes_max, client.head(), request.parts(),
                                  shared.store.identity(), settings, route);
  if (here) {
    reserve = std::move(*here);
  } else {
    reserve = co_await reserve_beside(client, shared, settings, route, request);
    auto refusal = co_await request.authority->check_again();  // The digest may have taken long.
    if (refusal) {
      request.seen.refused(refusal->status);
      co_await client.answer(*refusal);
      co_return;
    }
  }
  trace.end(Observation::Phase::fingerprint);
  if (!reserve) {
    request.seen.refused(reserve.error().status);
    co_await client.refuse(reserve.error());
    co_return;
  }
  crash_point(CrashPoint::fingerprinted);
  // Copied before the body goes.
  const auto rpc_id = route.jsonrpc ? rpc_call_id(request.body.bytes()) : std::nullopt;
  std::string own_rpc_id(rpc_id.value_or(std::string_view()));
  const bool async = is_async(client.head(), route);
  auto exchange =
      make_exchange(client.head(), request.parts(), std::move(*reserve), shared.store.identity(),
                    settings, route, async, shared.dispatcher->look_again(), trace.outgoing());
  if (async) {
    request.findable = shared.search->in_request(settings, request.seen.trace_id(client.head()),
                                                 request.body.bytes());
    drop_body(request.body, shared.spill);  // The store has it from here on.
  }
  KeyedDriver driver(client, pool, shared, settings, route, std::move(request), std::move(exchange),
                     !async);
  driver.answer_rpc_under(std::move(own_rpc_id));
  co_await driver.run();
}

}  // namespace idem::gateway
