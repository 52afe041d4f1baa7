#pragma once

#include "store/postgres/session.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>

/// What a service's transaction asks of its one record (schema/postgres/0012): statements that each
/// session prepares, and what their answers say.
namespace idem::postgres {

/// A statement with parameters of its own; `asked()` is valid as long as this.
struct OneStep {
  std::string_view sql;
  Params params;
  Session::Asked asked() const { return {sql, params.raw(), Session::Format::binary, Kept::ours}; }
};

/// Of a key that has no record and no other names, which is nearly all there is.
OneStep ask_reserve_new(const Reserve& verb);
struct MadeNew {
  Fence fence = 0;
  std::string number;  ///< Of the transaction.
};
/// None: it is not new, or nobody can tell without waiting. Nothing was made.
std::optional<MadeNew> told_of_reserve_new(const Rows& rows);

OneStep ask_admit(const RecordId& id, const Attempt& attempt);
struct Admitted {
  std::string number;  ///< Of the transaction.
  bool is_own = false;
  State state{};
};
/// None: there is no record.
std::optional<Admitted> told_of_admit(const Rows& rows);

/// Fails where it is not done: see told_of_refusal().
OneStep ask_complete(const std::string& number, const Complete& verb);
OwnerReply told_of_complete(const Rows& rows);
/// The verdict that a completion failed with; none: it failed otherwise.
std::optional<OwnerReply> told_of_refusal(const Failure& failure);
/// A completion failed because the transaction is not the one that was admitted.
bool is_another_transaction(const Failure& failure);

/// What was prepared is not there, or answers in another form: another session has to be asked.
/// Nothing was done.
bool is_forgotten(const Failure& failure);

}  // namespace idem::postgres
