#include "store/postgres/outcome.hpp"

#include "core/record/stored_response_codec.hpp"

namespace idem::postgres {
namespace {

CallResult refused(std::string_view why) { return {std::unexpected(damaged(why))}; }

}  // namespace

std::string_view policy_name(LeasePolicy policy) noexcept {
  switch (policy) {
    case LeasePolicy::unknown:
      return "unknown";
    case LeasePolicy::resume:
      return "resume";
    case LeasePolicy::rerun:
      return "rerun";
  }
  return "unknown";
}

CallResult to_outcome(Cells& cells, const Token& token) {
  const std::string_view kind = cells.bytes();
  const RecordId id = cells.id();
  const auto fence = cells.fence();
  cells.skip();  // The token: the caller's own.
  std::string recovery_point = cells.text();
  const bool again = cells.boolean();
  const State state = cells.state();
  const bool is_other = cells.boolean();
  const Millis lease_remaining = cells.millis();
  const StoreTime locked_until = cells.moment();
  const StoreTime since = cells.moment();
  const auto reconcile_in = cells.optional_millis();
  const StoreTime completed_at = cells.moment();
  const StoreTime expires_at = cells.moment();
  const Millis expires_in = cells.millis();
  cells.skip();  // The status: the head has it, too.
  const std::string_view head = cells.bytes();
  const std::string_view body = cells.bytes();
  const bool ended_lease = cells.boolean();
  const Millis retry_in = cells.millis();
  const bool is_stored = cells.boolean();
  const auto result = [&](ReserveOutcome outcome) {
    return CallResult{std::move(outcome), false, ended_lease};
  };
  if (kind == "execute") {
    if (!fence) return refused("execute without a fence");
    return result(Execute{id, {*fence, token}, std::move(recovery_point), again, ended_lease});
  }
  if (kind == "in_progress") {
    return {ReserveOutcome(InProgress{lease_remaining, id, fence, locked_until, is_stored}), again,
            false};
  }
  if (kind == "replay") {
    auto response = decode_answer(head);
    if (!response) return refused(response.error());
    response->body = std::string(body);
    return result(Replay{std::move(*response), completed_at, expires_at, id, expires_in, fence});
  }
  if (kind == "key_misuse") return result(KeyMisuse{state, is_other, id});
  if (kind == "unknown") return result(Unknown{since, reconcile_in, id, ended_lease});
  if (kind == "expired") return result(Expired{completed_at, id});
  if (kind == "pending") return result(Pending{id, ended_lease});
  if (kind == "quota_exceeded") return result(QuotaExceeded{retry_in});
  // Only an answer that was read has a moment.
  const bool has_answer = completed_at != StoreTime{};
  if (kind == "damaged") {
    return {std::unexpected(damaged(has_answer ? answer_differs : record_contradicts, id))};
  }
  return refused("an unknown outcome");
}

CallResult to_owner_reply(Cells& cells) {
  const bool held = cells.boolean();
  OwnerReply reply;
  const State state = cells.state();
  if (state != State{}) reply.state = state;
  const std::string_view verdict = cells.bytes();
  reply.expires_at = cells.optional_moment();
  reply.is_contradicted = cells.boolean();
  if (held) {
    return {std::unexpected(
                StoreError{StoreError::Code::unavailable, "another transaction holds the record"}),
            true};
  }
  if (verdict == "done") {
    reply.verdict = Verdict::done;
  } else if (verdict == "settled") {
    reply.verdict = Verdict::settled;
  } else if (verdict != "stale") {
    return refused("an unknown verdict");
  }
  return {reply};
}

}  // namespace idem::postgres
