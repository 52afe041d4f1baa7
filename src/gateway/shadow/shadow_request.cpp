#include "gateway/shadow/shadow_request.hpp"

#include "core/record/store_clock.hpp"
#include "gateway/auth/client_name.hpp"
#include "gateway/keyed/reserve.hpp"
#include "gateway/passthrough/passthrough.hpp"
#include "gateway/way_in.hpp"
#include "http/network.hpp"
#include "loop/store_link.hpp"

#include <idem/assert.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <functional>

namespace idem::gateway {
namespace {

using metrics::NotObserved;
using metrics::Shadowed;

std::string_view code_of(const http::Refusal& refusal) {
  return kind_of(http::problem_of(refusal).code).name;
}

/// A refusal of a key, as the report counts it.
Shadowed kind_of_refusal(ProblemCode code) noexcept {
  if (code == ProblemCode::key_missing) return Shadowed::missing_key;
  if (code == ProblemCode::key_invalid) return Shadowed::bad_key;
  return code == ProblemCode::key_expired ? Shadowed::expired : Shadowed::refused;
}

}  // namespace

std::shared_ptr<ShadowRequest> ShadowRequest::begin(const Around& around, SharedSettings settings,
                                                    const Route& route,
                                                    const http::ServerStream& client) {
  ShadowRoom& room = *around.shared.shadow;
  const std::size_t bytes = KeptHead::bytes_of(client.head());
  auto reason = NotObserved::busy;
  if (room.take_place()) {
    if (room.take_bytes(bytes)) {
      return std::make_shared<ShadowRequest>(around, std::move(settings), route, client);
    }
    room.give_place();
    reason = NotObserved::memory;
  }
  const std::string from = client_name(client, settings->scope);
  around.shared.observing.registry.shadow().seen(route.label(),
                                                 {.decision = Shadowed::not_observed,
                                                  .reason = reason,
                                                  .client = from,
                                                  .method = client.head().method,
                                                  .path = http::path_of(client.head().origin_form),
                                                  .why = metrics::name_of(reason)});
  return nullptr;
}

ShadowRequest::ShadowRequest(const Around& around, SharedSettings settings, const Route& route,
                             const http::ServerStream& client)
    : around_(around),
      room_(*around.shared.shadow),
      table_(around.shared.observing.registry.shadow()),
      settings_(std::move(settings)),
      route_(route),
      head_(client.head()),
      peer_identity_(client.peer_identity()),
      client_(client_name(client, settings_->scope)),
      ended_(around.loop) {}

ShadowRequest::~ShadowRequest() {
  if (end_) room_.ends().end(*id_, end_);
  drop_body();
  room_.give_bytes(head_.bytes());
  give_place();
}

void ShadowRequest::request_piece(std::string_view piece) {
  if (copy_ != Copy::going_on) return;
  if (piece.size() > route_.request_body_bytes_max - body_.size()) {
    copy_ = Copy::too_large;
  } else if (!make_room(body_.size() + piece.size())) {
    copy_ = Copy::no_room;
  } else {
    body_ += piece;
    return;
  }
  drop_body();
}

/// Twice as much at a time, as a string grows; what it holds unused counts, too.
bool ShadowRequest::make_room(std::size_t bytes) {
  if (bytes <= body_bytes_) return true;
  const std::size_t twice = std::min(2 * body_bytes_, route_.request_body_bytes_max);
  const std::size_t all = std::max(bytes, twice);
  if (!room_.take_bytes(all - body_bytes_)) return false;
  body_bytes_ = all;
  body_.reserve(all);
  return true;
}

void ShadowRequest::request_whole() {
  unsent_ = false;
  if (whole_) return;
  whole_ = true;
  whole_at_ = MonotonicClock::now();
  around_.loop.spawn_beside(run(shared_from_this()));
}

void ShadowRequest::not_sent() {
  unsent_ = true;
  if (whole_) end(ShadowEnding::released_proven, 0);
}

void ShadowRequest::answered(const Answer& answer) {
  is_answered_ = true;
  facts_ = {.status = answer.head.status,
            .has_retry_after = false,
            .while_sending = answer.while_sending,
            .declared = answer.what.declared};
  for (const auto& field : answer.head.fields) {
    facts_.has_retry_after |= field.known == http::FieldName::retry_after;
  }
  const bool too_large = answer.head.framing == http::Framing::content_length &&
                         answer.head.content_length > route_.response_body_bytes_max;
  if (too_large || answer.is_stream) {
    end(ending_of(facts_, route_.answers, false), facts_.status);
  } else if (answer.head.framing == http::Framing::until_close && !answer.end_is_proven) {
    lost(Loss::cut);  // Its end looks like one.
  }
}

void ShadowRequest::answer_piece(std::size_t bytes, bool is_last) {
  if (ending_) return;
  answer_bytes_ += bytes;
  const bool too_large = answer_bytes_ > route_.response_body_bytes_max;
  // An enforced attempt has so much time from its first byte to the last of the answer.
  const bool timed_out = whole_ && MonotonicClock::now() > whole_at_ + route_.upstream_timeout;
  if (timed_out) {
    end(ShadowEnding::unknown, facts_.status);
  } else if (too_large || is_last) {
    end(ending_of(facts_, route_.answers, !too_large && route_.store_body), facts_.status);
  }
}

void ShadowRequest::lost(Loss) {
  const bool reruns = route_.lease_policy == LeasePolicy::rerun;
  end(reruns ? ShadowEnding::released_declared : ShadowEnding::unknown, facts_.status);
}

void ShadowRequest::over() {
  if (!whole_) {
    whole_ = true;
    if (!judge_head()) not_observed(unsent_ ? NotObserved::not_sent : NotObserved::upload);
    give_place();
  }
  if (ending_) return;
  // The client has left. Enforcement would have read the rest of the answer.
  if (is_answered_) return end(ending_of(facts_, route_.answers, route_.store_body), facts_.status);
  lost(Loss::closed);
}

/// True: the head decides.
bool ShadowRequest::judge_head() {
  const auto& head = head_.head();
  if (const auto refusal = refused_by_head(head, *settings_, route_)) {
    decide(Shadowed::refused, code_of(*refusal));
    return true;
  }
  const auto scope = around_.scopes.read(head, peer_identity_, *settings_);
  if (!scope) {
    decide(Shadowed::missing_scope, kind_of(ProblemCode::scope_missing).name);
    return true;
  }
  scope_ = *scope;
  judged_ = judge_key(head, *settings_, route_, wall_time());
  const bool is_final = judged_->is_refused ||
                        (judged_->new_key_rejection && !read_key(head, *settings_, KeyOptions{}));
  if (is_final) decide(*judged_->new_key_rejection);
  return is_final;
}

Task<void> ShadowRequest::run(std::shared_ptr<ShadowRequest> self) {
  IDEM_ASSERT(self.get() == this);
  if (!judge_head()) {
    auto observing = observe();
    co_await observing;
  }
  drop_body();
  if (end_) room_.ends().end(*id_, std::exchange(end_, nullptr));
  give_place();
}

Task<void> ShadowRequest::observe() {
  const auto key = judged_->key ? judged_->key : read_key(head_.head(), *settings_, KeyOptions{});
  id_ = possible_ids(head_.head(), around_.shared.store.identity(), *settings_, route_, scope_,
                     *key, Enforce::shadow)
            .front();
  // A retry of the same client may come as soon as it has its answer: it waits here for the record
  // of that, and its request does not.
  Turns::Taken before = room_.ends().taken(*id_);
  if (before.size() >= limits::shadow_turns_max) co_return not_observed(NotObserved::busy);
  if (ending_) end_ = room_.ends().take(*id_);
  auto waiting = wait_for(room_.ends(), std::move(before));
  co_await waiting;
  if (judged_->new_key_rejection) {
    auto finding = find_existing();
    const bool found = co_await finding;
    if (!found) co_return;
  }
  if (copy_ == Copy::too_large) {
    decide(Shadowed::refused, code_of(http::body_too_large));
  } else if (copy_ == Copy::no_room) {
    not_observed(NotObserved::memory);
  } else {
    auto digesting = make_digest();
    auto reserve = co_await digesting;
    drop_body();
    if (!reserve) co_return decide(Shadowed::refused, code_of(reserve.error()));
    auto asking = ask(std::move(*reserve));
    co_await asking;
  }
}

Task<void> ShadowRequest::wait_for(Turns& turns, Turns::Taken taken) {
  for (const auto& one : taken) {
    if (turns.is_over(*one)) continue;
    auto waiting = await_turn(around_.loop, turns, one);
    co_await waiting;
  }
}

/// Whether a key that may begin no new record has one. Otherwise that is decided.
Task<bool> ShadowRequest::find_existing() {
  auto looking =
      existing_key(around_.loop, around_.shared.store, head_.head(), *settings_, route_, scope_);
  auto existing = co_await looking;
  if (existing && *existing) {
    judged_->key = std::move(**existing);
    co_return true;
  }
  if (existing) {
    decide(*judged_->new_key_rejection);
  } else {
    not_observed(NotObserved::store);
  }
  co_return false;
}

Task<std::expected<Reserve, http::Refusal>> ShadowRequest::make_digest() {
  const auto& head = head_.head();
  const std::string operation = route_.operation(head.method, http::path_of(head.origin_form));
  const Problem* const rejection =
      judged_->new_key_rejection ? &*judged_->new_key_rejection : nullptr;
  const RequestParts parts{scope_, operation, *judged_->key, body_, rejection};
  const Identity& identity = around_.shared.store.identity();
  auto here = make_reserve_within(limits::shadow_digest_on_loop_bytes_max, head, parts, identity,
                                  *settings_, route_);
  if (here) co_return std::move(*here);
  std::function<std::expected<Reserve, http::Refusal>()> work = [&] {
    return make_reserve(head, parts, identity, *settings_, route_);
  };
  auto digesting = run_offloaded(around_.loop, *around_.shared.digesting, work, scope_);
  auto reserve = co_await digesting;
  co_return reserve;
}

Task<void> ShadowRequest::ask(Reserve reserve) {
  if (is_late()) co_return not_observed(NotObserved::store_slow);
  const RecordId id = reserve.id;
  const Token token = reserve.token;
  StoreCall call = std::move(reserve);
  const auto turn = room_.asks().take(*id_);
  if (!turn) co_return not_observed(NotObserved::busy);
  auto asking = ask_store(around_.loop, around_.shared.store, call);
  const StoreResult result = co_await asking;
  room_.asks().end(*id_, turn);
  if (!result) {
    not_observed(NotObserved::store);
    if (result.error().code != StoreError::Code::in_doubt) co_return;
    auto releasing = release_late(id, AttemptRef{std::nullopt, token});
    co_await releasing;
    co_return;
  }
  const ReserveOutcome outcome = as_enforced(std::get<ReserveOutcome>(*result));
  const auto* const execute = std::get_if<Execute>(&outcome);
  if (is_late()) {
    not_observed(NotObserved::store_slow);
    if (execute == nullptr) co_return;
    auto releasing = release_late(execute->id, execute->attempt);
    co_await releasing;
    co_return;
  }
  take_outcome(outcome);
  if (execute == nullptr) co_return;
  auto settling = settle(execute->id, execute->attempt);
  co_await settling;
}

/// So that no attempt without a decision holds its record.
Task<void> ShadowRequest::release_late(RecordId id, AttemptRef attempt) {
  auto writing = write(Release{id, attempt, ReleaseBasis::proven, "not_observed", Millis{}});
  co_await writing;
}

Task<void> ShadowRequest::settle(RecordId id, Attempt attempt) {
  co_await ended_.wait();
  auto waiting = wait_for(room_.asks(), room_.asks().taken(*id_));
  co_await waiting;
  if (*ending_ == ShadowEnding::unknown) table_.ended_unknown(route_.label(), seen());
  auto writing = write(ending_call(id, attempt, *ending_, status_));
  const bool written = co_await writing;
  if (!written) table_.not_settled(route_.label());
}

/// The lease frees the record if this fails.
Task<bool> ShadowRequest::write(StoreCall ending) {
  Millis pause = limits::shadow_settle_retry_first;
  for (int tries = 1;; ++tries) {
    StoreCall call = ending;
    auto asking = ask_store(around_.loop, around_.shared.store, call);
    const StoreResult result = co_await asking;
    if (result) co_return std::get<OwnerReply>(*result).verdict == Verdict::done;
    if (result.error().is_final() || tries == limits::shadow_settle_tries_max) co_return false;
    co_await around_.loop.sleep(pause);
    pause *= 2;
  }
}

void ShadowRequest::take_outcome(const ReserveOutcome& outcome) {
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { one.id; }) ref_ = one.id;
      },
      outcome);
  if (const auto* replay = std::get_if<Replay>(&outcome)) {
    if (replay->response.body_stored) return decide(Shadowed::duplicate);
    return decide(Shadowed::not_kept, kind_of(ProblemCode::response_not_stored).name);
  }
  if (std::holds_alternative<QuotaExceeded>(outcome) && judged_->new_key_rejection) {
    return decide(*judged_->new_key_rejection);
  }
  switch (metrics::outcome_of(outcome)) {
    case metrics::Outcome::created:
    case metrics::Outcome::failed_retry:
    case metrics::Outcome::replay:
      return decide(Shadowed::first);
    case metrics::Outcome::in_progress:
      return decide(Shadowed::race, kind_of(ProblemCode::in_progress).name);
    case metrics::Outcome::key_misuse:
      return decide(Shadowed::misuse, kind_of(ProblemCode::key_reused).name);
    case metrics::Outcome::unknown:
      return decide(Shadowed::unknown_retry, kind_of(ProblemCode::outcome_unknown).name);
    case metrics::Outcome::expired:
      return decide(Shadowed::expired, kind_of(ProblemCode::key_expired).name);
    case metrics::Outcome::quota_exceeded:
      return decide(Shadowed::refused, kind_of(ProblemCode::quota_exceeded).name);
  }
}

void ShadowRequest::decide(const Problem& problem) {
  decide(kind_of_refusal(problem.code), kind_of(problem.code).name);
}

void ShadowRequest::decide(Shadowed decision, std::string_view why) {
  IDEM_ASSERT(!decided_);
  decided_ = decision;
  auto request = seen();
  request.why = why;
  table_.seen(route_.label(), request);
}

void ShadowRequest::not_observed(NotObserved reason) {
  IDEM_ASSERT(!decided_);
  decided_ = Shadowed::not_observed;
  auto request = seen();
  request.reason = reason;
  request.why = metrics::name_of(reason);
  table_.seen(route_.label(), request);
}

metrics::ShadowSeen ShadowRequest::seen() const {
  const auto& head = head_.head();
  return {.decision = decided_.value_or(Shadowed::not_observed),
          .scope = scope_,
          .client = client_,
          .id = ref_ ? ref_ : id_,
          .method = head.method,
          .path = http::path_of(head.origin_form),
          .key_bytes = judged_ && judged_->key ? judged_->key->size() : 0};
}

// Before the client has the last of its answer, so that its retry finds this.
void ShadowRequest::end(ShadowEnding ending, int status) {
  if (ending_) return;
  ending_ = ending;
  status_ = status;
  // Of another decision nothing is written.
  if (id_ && decided_.value_or(Shadowed::first) == Shadowed::first) end_ = room_.ends().take(*id_);
  ended_.open();
}

bool ShadowRequest::is_late() const {
  return MonotonicClock::now() > whole_at_ + limits::shadow_store_wait_max;
}

void ShadowRequest::drop_body() {
  std::string().swap(body_);
  room_.give_bytes(std::exchange(body_bytes_, 0));
}

void ShadowRequest::give_place() {
  if (std::exchange(has_place_, false)) room_.give_place();
}

Task<void> pass_in_shadow(http::ServerStream& client, http::UpstreamPool& pool,
                          const SharedSettings& settings, const Route& route, Observer& observer,
                          const ShadowRequest::Around& around) {
  struct Over {
    std::shared_ptr<ShadowRequest> request;
    ~Over() {
      if (request) request->over();
    }
  };
  const Over observed{ShadowRequest::begin(around, settings, route, client)};
  co_await pass_through(client, pool, *settings, route, observer, observed.request.get());
}

}  // namespace idem::gateway
