#pragma once

#include "store/postgres/session.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>

/// The statements of a service's transaction on its one record (42_one_record.sql), which each
/// session prepares, and the meaning of their results.
namespace idem::postgres {

/// A statement with parameters of its own; `asked()` is valid as long as this.
struct OneStep {
  std::string_view sql;
  Params params;
  Session::Asked asked() const { return {sql, params.raw(), Session::Format::binary, Kept::ours}; }
};

/// A record that its transaction alone can make, and has not made yet. No other transaction sees
/// it, so it is written once, with its answer.
struct NewRecord {
  const Reserve* as = nullptr;
  Fence fence = 0;
  std::string number;      ///< Of the transaction.
  std::int64_t began = 0;  ///< By the store's clock, ms.
};
/// For a key without a record and without other names: the usual case.
OneStep ask_admit_new(const Reserve& verb);
/// None: the key is not new, or that could not be seen without waiting. Nothing was done.
std::optional<NewRecord> results_of_admit_new(const Reserve& verb, const Rows& rows);
/// Makes the record as running: something in its transaction may look for it, or commit without a
/// completion.
OneStep ask_make_new(const NewRecord& record);
/// Makes the record with its answer. Fails as ask_complete() does, with the same result.
OneStep ask_complete_new(const NewRecord& record, const Complete& verb);

OneStep ask_admit(const RecordId& id, const Attempt& attempt);
struct Admitted {
  std::string number;  ///< Of the transaction.
  bool is_own = false;
  State state{};
};
/// None: there is no record.
std::optional<Admitted> results_of_admit(const Rows& rows);

/// Fails if the record was not completed: see results_of_refusal().
OneStep ask_complete(const std::string& number, const Complete& verb);
OwnerReply results_of_complete(const Rows& rows);
/// The verdict that a completion failed with; none: it failed otherwise.
std::optional<OwnerReply> results_of_refusal(const Failure& failure);
/// A completion failed because the transaction is not the one that was admitted.
bool is_another_transaction(const Failure& failure);

/// A prepared statement is not there, or its result has other columns: another session has to be
/// used. Nothing was done.
bool is_forgotten(const Failure& failure);

}  // namespace idem::postgres
