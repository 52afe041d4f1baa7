#include "core/record/stored_response_codec.hpp"
#include "core/transitions/transitions.hpp"

namespace idem::transitions {
namespace {

using ResolveVerdict = Resolve::Verdict;

// An answer without an attempt is the store's own, and public.
ResolveVerdict put_answer(Record& record, Reseal& verb, StoreTime now) {
  if (state_at(record, now) != State::completed || !record.response)
    return ResolveVerdict::wrong_state;
  if (!verb.fence || verb.fence != record.fence()) return ResolveVerdict::wrong_fence;
  StoredResponse& stored = *record.response;
  const bool is_same = digest_of_stored(stored) == verb.seen &&
                       stored.status == verb.response->status &&
                       stored.body_stored == verb.response->body_stored;
  if (!is_same) return ResolveVerdict::superseded;
  stored = std::move(*verb.response);
  return ResolveVerdict::done;
}

// The request of a running attempt stays: its dispatcher has it.
ResolveVerdict put_request(Record& record, Reseal& verb) {
  const bool rests = record.state == State::pending || record.state == State::unknown;
  if (!rests || !record.stored_request) return ResolveVerdict::wrong_state;
  if (digest_of_stored(*record.stored_request) != verb.seen) return ResolveVerdict::superseded;
  record.stored_request = std::move(*verb.request);
  return ResolveVerdict::done;
}

}  // namespace

Step<Resolve::Reply> reseal(std::optional<Record>& record, Reseal& verb, StoreTime now) {
  Step<Resolve::Reply> step;
  if (!record || !is_live(*record, now)) return step;
  step.outcome.state = state_at(*record, now);
  const bool is_answer = verb.response.has_value();
  step.outcome.verdict = is_answer ? put_answer(*record, verb, now) : put_request(*record, verb);
  if (step.outcome.verdict == ResolveVerdict::done)
    step.change = {Write::update, is_answer, !is_answer};
  return step;
}

}  // namespace idem::transitions
