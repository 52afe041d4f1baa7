#include "core/transitions/record_changes.hpp"

#include "core/exchange/answers.hpp"
#include "core/record/stored_response_codec.hpp"

#include <idem/limits.hpp>

#include <openssl/crypto.h>

namespace idem::transitions {
namespace {

void drop_request(Record& record, Change& change) {
  if (!record.stored_request) return;
  record.stored_request.reset();
  change.request = true;
}

void clear_outcome(Record& record) {
  record.release_basis.reset();
  record.last_error_code.clear();
  record.reconcile_after.reset();
  record.reconcile_attempts = 0;
}

/// The bytes that an answer adds to the charge of each record.
std::uint64_t charge_of(const StoredResponse& response) {
  const std::uint64_t bytes = encoded_bytes(response) + response.body.size();
  return bytes > limits::small_answer_bytes_max ? bytes : 0;
}

StoredResponse timed_out(const RecordId& id) {
  WireAnswer answer = timed_out_answer(id);
  return {answer.status, std::move(answer.headers), std::move(answer.body), true};
}

}  // namespace

void apply_route(Record& record, const Reserve& verb) {
  record.lease_policy = verb.lease_policy;
  record.retention = verb.retention;
  record.tombstone = verb.tombstone;
  record.provider = verb.provider;
  record.sealed_key = verb.sealed_key;
}

Record fresh_record(const Reserve& verb, StoreTime now) {
  Record record;
  record.id = verb.id;
  record.scope = verb.scope;
  record.operation = verb.operation;
  record.generation = verb.generation;
  record.fingerprint = verb.fingerprints.front();
  apply_route(record, verb);
  if (verb.quota) record.charged = limits::record_charge;
  record.created_at = now;
  record.changed_at = now;
  return record;
}

void begin_attempt(Record& record, const NewAttempt& attempt, StoreTime now, FenceCounter& fences) {
  record.state = State::in_progress;
  record.attempt = Attempt{fences.next(), attempt.token};
  record.owner = attempt.owner;
  record.locked_until = now + attempt.lease;
  record.dispatched = attempt.dispatched;
  clear_outcome(record);
  // It names the work of an earlier attempt: a question by it would find that attempt.
  record.upstream_reference.clear();
  record.is_contested = false;
  record.changed_at = now;
  if (!record.stored_request) record.expires_at.reset();
}

// Compares the answer with the evidence that came before it.
Change finish(Record& record, StoredResponse response, StoreTime now) {
  Change change{Write::update, true, false};
  const bool is_success = response.status < 400;
  record.is_contested = is_success ? is_denied(record) : record.is_contested;
  drop_request(record, change);
  clear_outcome(record);
  record.sealed_key.clear();
  record.state = State::completed;
  record.response = std::move(response);
  if (record.charged != 0) record.charged = limits::record_charge + charge_of(*record.response);
  record.locked_until = {};
  record.changed_at = now;
  record.completed_at = now;
  record.expires_at = now + record.retention;
  record.tombstone_until = *record.expires_at + record.tombstone;
  return change;
}

Change release_attempt(Record& record, ReleaseBasis basis, std::string error_code, Millis retry_in,
                       StoreTime now) {
  if (record.is_contested) {
    // The release says that nothing ran; earlier evidence says that it did.
    turn_unknown(record, std::move(error_code), now);
    record.reconcile_after = now;
    return {Write::update, false, false};
  }
  if (record.stored_request && record.expires_at && now >= *record.expires_at) {
    return time_out(record, now);
  }
  clear_outcome(record);
  record.release_basis = basis;
  record.last_error_code = std::move(error_code);
  record.changed_at = now;
  if (record.stored_request) {
    record.state = State::pending;
    record.locked_until = now + retry_in;
  } else {
    record.state = State::failed_retryable;
    record.locked_until = {};
    record.expires_at = now + record.retention;
  }
  return {Write::update, false, false};
}

Change time_out(Record& record, StoreTime now) { return finish(record, timed_out(record.id), now); }

bool is_denied(const Record& record) noexcept {
  const bool is_open = record.state == State::in_progress || record.state == State::unknown;
  return is_open && record.last_error_code == denied_code;
}

void turn_unknown(Record& record, std::string error_code, StoreTime now) {
  if (is_denied(record)) error_code = denied_code;
  clear_outcome(record);
  // locked_until stays: until then the attempt could still send, so negative evidence needs it.
  record.state = State::unknown;
  record.last_error_code = std::move(error_code);
  record.changed_at = now;
}

bool is_same_attempt(const Record& record, const AttemptRef& asked) noexcept {
  const auto& held = record.attempt;
  // A token of zeros belongs to no attempt: cache_bust() forgot it.
  return held && held->token != Token{} && (!asked.fence || asked.fence == held->fence) &&
         CRYPTO_memcmp(held->token.bytes.data(), asked.token.bytes.data(),
                       held->token.bytes.size()) == 0;
}

}  // namespace idem::transitions
