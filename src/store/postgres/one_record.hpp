#pragma once

#include "store/postgres/session.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>

/// What a service's transaction asks of its one record (42_one_record.sql): statements that each
/// session prepares, and what their answers say.
namespace idem::postgres {

/// A statement with parameters of its own; `asked()` is valid as long as this.
struct OneStep {
  std::string_view sql;
  Params params;
  Session::Asked asked() const { return {sql, params.raw(), Session::Format::binary, Kept::ours}; }
};

/// A record that its transaction has for itself, and has not made yet: nobody else can make it, nor
/// see that it is being made. So it is written once, with its answer.
struct NewRecord {
  const Reserve* as = nullptr;
  Fence fence = 0;
  std::string number;      ///< Of the transaction.
  std::int64_t began = 0;  ///< By the store's clock.
};
/// Of a key that has no record and no other names, which is nearly all there is.
OneStep ask_admit_new(const Reserve& verb);
/// None: it is not new, or nobody can tell without waiting. Nothing was done.
std::optional<NewRecord> results_of_admit_new(const Reserve& verb, const Rows& rows);
/// Makes it after all, running: something in its transaction may look for it, or commit without
/// having completed it.
OneStep ask_make_new(const NewRecord& record);
/// Makes it with its answer. Fails as ask_complete() does; its answer reads the same.
OneStep ask_complete_new(const NewRecord& record, const Complete& verb);

OneStep ask_admit(const RecordId& id, const Attempt& attempt);
struct Admitted {
  std::string number;  ///< Of the transaction.
  bool is_own = false;
  State state{};
};
/// None: there is no record.
std::optional<Admitted> results_of_admit(const Rows& rows);

/// Fails where it is not done: see results_of_refusal().
OneStep ask_complete(const std::string& number, const Complete& verb);
OwnerReply results_of_complete(const Rows& rows);
/// The verdict that a completion failed with; none: it failed otherwise.
std::optional<OwnerReply> results_of_refusal(const Failure& failure);
/// A completion failed because the transaction is not the one that was admitted.
bool is_another_transaction(const Failure& failure);

/// What was prepared is not there, or answers in another form: another session has to be asked.
/// Nothing was done.
bool is_forgotten(const Failure& failure);

}  // namespace idem::postgres
