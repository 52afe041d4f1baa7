#pragma once

#include "store/sqlite/connection.hpp"

#include <idem/record.hpp>

#include <expected>

/// The columns of a slot: one order for every statement that reads or writes them.
namespace idem::sqlite {

/// In a SELECT: `slot` is column 0, then these from 1 on.
inline constexpr std::string_view slot_columns =
    "slots.slot, id, scope, operation, fingerprint_version, fingerprint, created_at, state, fence, "
    "token, owner, locked_until, dispatched, lease_policy, retention, tombstone, recovery_point, "
    "request_stored, release_basis, last_error_code, reconcile_after, reconcile_attempts, "
    "upstream_reference, changed_at, completed_at, expires_at, tombstone_until";
inline constexpr int slot_columns_end = 27;  ///< First column after them.

extern const std::string_view insert_slot;
extern const std::string_view update_slot;

void bind_insert(Statement& statement, const Record& record);
void bind_update(Statement& statement, const Record& record, std::int64_t slot);

/// The record without its answer; stored_request is present and empty where there is one. Error:
/// why the row cannot be what this program wrote.
std::expected<Record, std::string> read_slot(Statement& row);

}  // namespace idem::sqlite
