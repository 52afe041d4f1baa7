#pragma once

#include <idem/transaction.hpp>

namespace idem::inline v0_1 {

/// What Idem does to its own tables beside the records: the outbox (protocol.md §18) and what is
/// known of work in phases (§16). Each store that has transactions has the SQL; behind each stands
/// what it takes → what it answers. Ids are hexadecimal texts, lengths of time milliseconds.
enum class OwnStatement : std::uint8_t {
  put_message,     ///< id, operation, destination, aggregate type, aggregate id, type, payload,
                   ///< content type
  claim_messages,  ///< destination, most, lease, repeats, whether each is noted → relay_queue.cpp
  note_sending,    ///< seq, fence → a row: the claim is the last one
  note_delivery,   ///< seq, fence, how, reference, why, delay, ambiguous → a row: it was noted
  list_messages,   ///< state or '', destination or '', after seq, most → outbox.cpp
  find_message,    ///< id → the same columns, then content type, payload and history
  hasten_message,  ///< id → a row: it waits, and is due now
  count_messages,  ///< → destination, state, number, age of the oldest
  redrive,         ///< destination, id, type (NULL: any), most, spacing, nothing there, why
                   ///< → id, destination, type, verdict
  try_redrive,     ///< The same, and nothing changes.
  discard,         ///< destination, id, type (NULL: any), most, why → the same columns
  try_discard,     ///< The same, and nothing changes.
  reap_messages,   ///< most, retention → a row for each
  open_flow,   ///< id, operation, input, lease, token, whether calls are noted, first phase, the
               ///< record's point → point, its age, attempts, quiet for (or NULL), next, input
  pass_phase,  ///< id, point before, point now, lease, whether the next call is noted, next phase
               ///< → a row: the point was that
  find_point,  ///< id → point
  note_call,   ///< id, token, phase → a row: the attempt has it
  rest_flow,   ///< id, token, delay, whether attempts count anew (else this one does not): nothing
               ///< that was sent is open
  close_flow,  ///< id, token
  due_flows,   ///< operation, most → id, input, point, token
  put_off_flow,  ///< id, delay
};

class InternalSql {
 public:
  static SqlRows run(Transaction& transaction, OwnStatement which,
                     std::initializer_list<SqlValue> values) {
    return transaction.run_own(which, std::span(values.begin(), values.size()));
  }
  /// In a transaction of its own. The error is the database's.
  static std::expected<SqlRows, std::string> run(Transactions& transactions, OwnStatement which,
                                                 std::initializer_list<SqlValue> values) {
    return transactions.run_own(which, std::span(values.begin(), values.size()));
  }
};

}  // namespace idem::inline v0_1
