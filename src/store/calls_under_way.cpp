#include "store/calls_under_way.hpp"

#include <idem/health_limits.hpp>

namespace idem {
namespace {

std::optional<AskedFor> asked_for_by(const StoreCall& call) {
  if (const auto* claim = std::get_if<Claim>(&call)) {
    return AskedFor{{}, {}, claim->token, claim->lease};
  }
  const auto* const reserve = std::get_if<Reserve>(&call);
  // Other phases of such work may have committed: its attempt is left to its lease (protocol.md
  // §4).
  if (reserve == nullptr || reserve->lease_policy == LeasePolicy::resume) return std::nullopt;
  AskedFor asked{reserve->id, {}, reserve->token, reserve->lease};
  for (const OtherName& other : reserve->also) asked.others.push_back(other.id);
  return asked;
}

/// Its bytes may need the time.
bool carries_much(const StoreCall& call) noexcept {
  if (const auto* accept = std::get_if<Accept>(&call)) {
    return accept->request.size() > limits::store_quick_bytes_max;
  }
  const auto* const complete = std::get_if<Complete>(&call);
  return complete != nullptr && complete->response.body.size() > limits::store_quick_bytes_max;
}

/// Of one whose reply nobody waits for any more. A reservation that comes now is given back, so
/// that its asker is as free as if there were none.
StoreError::Code code_of(const CallsUnderWay::Call& call) noexcept {
  const bool leaves_nothing = call.traits.only_reads || call.asked_for;
  return leaves_nothing ? StoreError::Code::unavailable : StoreError::Code::in_doubt;
}

}  // namespace

std::optional<Token> token_of(const StoreCall& call) noexcept {
  return std::visit(
      [](const auto& verb) -> std::optional<Token> {
        if constexpr (requires { verb.attempt.token; }) {
          return verb.attempt.token;
        } else if constexpr (requires { verb.as.token; }) {
          return verb.as.token;
        } else if constexpr (requires { verb.token; }) {
          return verb.token;
        } else {
          return std::nullopt;
        }
      },
      static_cast<const AnyVerb&>(call));
}

CallsUnderWay::Begun CallsUnderWay::begin(const StoreCall& call, StoreCompletion done) {
  std::list<Call> one;
  Call& begun = one.emplace_back();
  begun.done = std::move(done);
  begun.verb = call.index();
  begun.traits = traits_of(call);
  begun.traits.may_take_long |= carries_much(call);
  begun.token = token_of(call);
  begun.asked_for = asked_for_by(call);
  begun.has_no_end = std::holds_alternative<AdoptRoutes>(call);
  const Ticket ticket = one.begin();
  const std::lock_guard lock(mutex_);
  ticket->due = MonotonicClock::now() + silence_max_;
  waiting_.splice(waiting_.end(), one);
  return {ticket, std::exchange(rests_, false)};
}

CallsUnderWay::Call CallsUnderWay::end(Ticket ticket) {
  std::list<Call> one;
  {
    const std::lock_guard lock(mutex_);
    one.splice(one.begin(), ticket->is_late ? late_ : waiting_, ticket);
    if (ticket->is_late) {
      if (!ticket->traits.only_reads) --late_writes_;
      if (ticket->token) late_verbs_.erase(late_verbs_.find({*ticket->token, ticket->verb}));
      any_late_.store(!late_.empty(), std::memory_order_release);
    }
  }
  return std::move(one.front());
}

CallsUnderWay::Late CallsUnderWay::take_late(MonotonicTime now, bool is_open) {
  Late late;
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && waiting_.front().due <= now) {
    const Ticket call = waiting_.begin();
    if (call->has_no_end || (call->traits.may_take_long && !is_open)) {
      late.in_question |= !call->has_no_end;
      call->due = now + silence_max_;
      waiting_.splice(waiting_.end(), waiting_, call);
      continue;
    }
    late_.splice(late_.end(), waiting_, call);
    call->is_late = true;
    any_late_.store(true, std::memory_order_release);
    if (call->token) late_verbs_.insert({*call->token, call->verb});
    if (!call->traits.only_reads) ++late_writes_;
    if (!call->traits.may_take_long) {
      late.opens = is_open = true;
      late.would_write |= !call->traits.only_reads;
    }
    late.askers.push_back({std::exchange(call->done, nullptr), code_of(*call)});
  }
  return late;
}

std::optional<MonotonicTime> CallsUnderWay::next() {
  const std::lock_guard lock(mutex_);
  if (!waiting_.empty()) return waiting_.front().due;
  rests_ = true;
  return std::nullopt;
}

bool CallsUnderWay::repeats_a_late_one(const StoreCall& call, const Token& token) const {
  if (!any_late_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  return late_verbs_.contains({token, call.index()});
}

bool CallsUnderWay::owes_writes() const {
  const std::lock_guard lock(mutex_);
  return late_writes_ > 0;
}

}  // namespace idem
