#pragma once

#include "store/postgres/cells.hpp"
#include "store/postgres/statements.hpp"

/// The composite answers of schema/postgres as the store port has them.
namespace idem::postgres {

std::string_view policy_name(LeasePolicy policy) noexcept;

/// The columns of idem.outcome, from `cells` on. `token` is the asker's.
CallResult to_outcome(Cells& cells, const Token& token);

/// The columns of idem.numbered_reply behind the number.
CallResult to_owner_reply(Cells& cells);

}  // namespace idem::postgres
