#pragma once

#include "store/postgres/cells.hpp"
#include "store/postgres/statements.hpp"

/// Composite results of the functions as values of the store port.
namespace idem::postgres {

std::string_view policy_name(LeasePolicy policy) noexcept;

/// The columns of idem.outcome, from `cells` on. `token` is the caller's.
CallResult to_outcome(Cells& cells, const Token& token);

/// The columns of idem.numbered_reply behind the number.
CallResult to_owner_reply(Cells& cells);

}  // namespace idem::postgres
