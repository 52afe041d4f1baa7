#pragma once

#include <idem/transaction.hpp>

namespace idem::inline v0_1 {

/// Idem's statements on its own tables beside the records: the outbox (protocol.md §18) and the
/// progress of work in phases (§16). Each store with transactions has the SQL. The comments name
/// the parameters → the columns of the result. Ids are hexadecimal texts, durations milliseconds.
enum class InternalStatement : std::uint8_t {
  put_message,     ///< id, operation, destination, aggregate type, aggregate id, type, payload,
                   ///< content type
  claim_messages,  ///< destination, most, lease, repeats, whether each is noted → relay_queue.cpp
  note_sending,    ///< seq, claim → a row if the claim is the last one
  note_delivery,   ///< seq, claim, how, reference, why, delay, ambiguous → a row if it was noted
  list_messages,   ///< state or '', destination or '', after seq, most → outbox.cpp
  messages_of_record,  ///< record's id, then as list_messages
  find_message,        ///< id → the same columns, then content type, payload and history
  hasten_message,      ///< id → a row if it waits; it is due now
  count_messages,      ///< → destination, state, number, age of the oldest
  redrive,             ///< destination, id, type (NULL: any), most, spacing, nothing there, why
                       ///< → id, destination, type, verdict
  try_redrive,         ///< The same, and changes nothing.
  discard,             ///< destination, id, type (NULL: any), most, why → the same columns
  try_discard,         ///< The same, and changes nothing.
  reap_messages,       ///< most, retention → a row for each
  open_flow,   ///< id, operation, input, lease, token, whether calls are noted, first phase, the
               ///< record's point → point, its age, attempts, quiet for (or NULL), next, input
  pass_phase,  ///< id, point before, point now, lease, whether the next call is noted, next phase
               ///< → a row if the point was the one before
  find_point,  ///< id → point
  note_call,   ///< id, token, phase → a row if the attempt has it
  rest_flow,   ///< id, token, delay, whether attempts count anew (else this one does not): no call
               ///< is open
  close_flow,  ///< id, token
  due_flows,   ///< operation, most → id, input, point, token
  postpone_flow,  ///< id, delay
};

class InternalSql {
 public:
  static SqlRows run(Transaction& transaction, InternalStatement which,
                     std::initializer_list<SqlValue> values) {
    return transaction.run_internal(which, std::span(values.begin(), values.size()));
  }
  /// In a transaction of its own. The error is the database's.
  static std::expected<SqlRows, std::string> run(Transactions& transactions,
                                                 InternalStatement which,
                                                 std::initializer_list<SqlValue> values) {
    return run(transactions, which, std::span(values.begin(), values.size()));
  }
  static std::expected<SqlRows, std::string> run(Transactions& transactions,
                                                 InternalStatement which,
                                                 std::span<const SqlValue> values) {
    return transactions.run_internal(which, values);
  }
};

}  // namespace idem::inline v0_1
