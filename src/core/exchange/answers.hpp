#pragma once

#include "core/exchange/policy.hpp"
#include "core/exchange/problem.hpp"

#include <idem/store.hpp>

/// From what the store said to what a client hears (protocol.md §7 column "conflict", §13, §14).
namespace idem {

/// RFC 9110 §5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string imf_fixdate(StoreTime time);

/// The stored answer with the replay fields; a 409 `response_not_stored` where no body was kept.
Answer replay_answer(Replay replay, const RecordId& id);

/// The same of a completed record. The answer keeps the record, whose body is not copied.
Answer replay_answer(const std::shared_ptr<const Record>& record);

Answer in_progress_answer(const InProgress& outcome, const RecordId& id);
/// 422, and 400 for clients that know it from Stripe.
Answer misuse_answer(const KeyMisuse& misuse, Preset preset);
Answer expired_answer(const RecordId& id);
/// 202: the work is stored, and goes on by itself.
Answer pending_answer(const RecordId& id, State state, Millis retry_after);
/// Where the operation can be looked up.
std::string operation_path(const RecordId& id);
/// What a *retry* hears about an unknown record: 409.
Answer unknown_answer(std::optional<Millis> reconcile_in, const RecordId& id);
/// What those hear who waited for an attempt that was released: 503. `is_gone`: so is its record.
Answer released_answer(const RecordId& id, Millis retry_after, bool is_gone = false);
/// What a stored request that expired before it could be run is completed with: 408.
Answer timed_out_answer(const RecordId& id);
/// 503: nothing was dispatched.
Answer store_unavailable_answer(Millis retry_after);
/// 503: what became of the operation cannot be told any more; nothing was dispatched.
Answer record_damaged_answer(const RecordId& id);
/// Where the store did not tell: one of the two.
Answer store_error_answer(const StoreError& error, Millis retry_after);
/// 503: the request may have been stored, and then it runs.
Answer accept_in_doubt_answer(Millis retry_after);
/// 503: this caller has as much under way as it may have; `detail` says what.
Answer overloaded_answer(std::string detail);
/// Whole seconds, rounded up, at least 1: what Retry-After says.
std::string retry_after_text(Millis time);

/// What of an answer is stored (§14): all but its body.
StoredResponse stored_head(const Answer& answer, bool body_is_stored,
                           std::span<const std::string> replay_fields = {});

/// Adds the outcome fields to the upstream's own answer, and lists ours for browsers where the
/// upstream's answer has Access-Control-Expose-Headers.
void mark_outcome(Answer& answer, std::string_view outcome, std::optional<StoreTime> expires_at);

}  // namespace idem
