#pragma once

#include "core/exchange/policy.hpp"
#include "core/exchange/problem.hpp"

#include <idem/store.hpp>

/// The client's answer to each outcome of the store (protocol.md §7 column "conflict", §13, §14).
namespace idem {

/// RFC 9110 §5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string imf_fixdate(StoreTime time);

/// The stored answer with the replay fields; 409 `response_not_stored` if its body was not kept.
WireAnswer replay_answer(Replay replay, const RecordId& id);

/// The same, from a completed record. The answer shares the record: it does not copy the body.
WireAnswer replay_answer(const std::shared_ptr<const Record>& record);

WireAnswer in_progress_answer(const InProgress& outcome, const RecordId& id);
/// 422; 400 under the stripe preset, whose clients expect that.
/// `asked`: the fingerprint of the request that gets it.
WireAnswer misuse_answer(const KeyMisuse& misuse, const Fingerprint& asked, Preset preset);
/// Why it is not known whether the record is of this request; a sentence.
std::string_view why_maybe_the_same(const Fingerprint& asked) noexcept;
WireAnswer expired_answer(const RecordId& id);
/// 202: the request is stored; the dispatcher runs it.
WireAnswer pending_answer(const RecordId& id, State state, Millis retry_after);
/// The path of the operation's status resource.
std::string operation_path(const RecordId& id);
/// To the request whose work may have run: 502 or 504, as `status` says. `detail`: what happened.
WireAnswer first_unknown_answer(int status, std::string detail, std::optional<Millis> reconcile_in,
                                const RecordId& id);
/// 409, to a *retry* that meets an unknown record.
WireAnswer unknown_answer(std::optional<Millis> reconcile_in, const RecordId& id);
/// 503, to clients that waited for an attempt that was released. `is_gone`: so is its record.
WireAnswer released_answer(const RecordId& id, Millis retry_after, bool is_gone = false);
/// 408, stored as the answer of a stored request that expired before it ran.
WireAnswer timed_out_answer(const RecordId& id);
/// After how long a client asks again that met a store in trouble, or an attempt that was released.
inline constexpr Millis store_retry_hint{1000};
/// 503: nothing was dispatched.
WireAnswer store_unavailable_answer(Millis retry_after);
/// 503: the record no longer shows how the operation ended; nothing was dispatched.
WireAnswer record_damaged_answer(const RecordId& id);
/// 500: the store can never hold this request; nothing was dispatched.
WireAnswer request_not_storable_answer();
/// One of the three, by the store's error.
WireAnswer store_error_answer(const StoreError& error, Millis retry_after);
/// 503: the request may have been stored, and then it runs.
WireAnswer accept_in_doubt_answer(Millis retry_after);
/// 503: this caller has as much under way as it may; `detail` says of what.
WireAnswer overloaded_answer(std::string detail);
/// The value of Retry-After: whole seconds, rounded up, at least 1.
std::string retry_after_text(Millis time);

/// Beside a stored answer: the span of the request that ran the work, as a traceparent. No client
/// and no upstream can set or read it, because its name is reserved (§14).
inline constexpr std::string_view trace_field = "Idem-Trace";

/// Beside a stored answer whose JSON-RPC `id` is that of the first request: a retry gets it under
/// its own id, where its route says so (§14).
inline constexpr std::string_view rpc_field = "Idem-Rpc";

/// True for a field that is stored beside an answer and is no part of it.
bool lies_beside(std::string_view stored_field) noexcept;

/// The stored part of an answer (§14), without its body. `trace`: a traceparent, or empty.
StoredResponse stored_head(const WireAnswer& answer, bool body_is_stored,
                           std::span<const std::string> replay_fields = {},
                           const std::string& trace = {});
/// Removes the trace from a stored answer, and returns it; empty: there was none.
std::string take_trace(std::vector<Field>& stored);

/// Adds the outcome fields to the upstream's own answer; adds their names to its
/// Access-Control-Expose-Headers, if it has one.
void mark_outcome(WireAnswer& answer, std::string_view outcome,
                  std::optional<StoreTime> expires_at);

}  // namespace idem
