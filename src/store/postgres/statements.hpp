#pragma once

#include "store/postgres/connection.hpp"
#include "store/sql_server/waiting.hpp"

#include <idem/store.hpp>

#include <span>
#include <vector>

/// Between the verbs and the functions of schema/postgres: the statement of a call, and the meaning
/// of its rows.
namespace idem::postgres {

using sql_server::CallResult;

struct Statement {
  std::string_view sql;
  Params params;
};

/// The last four parameters of a reserve.
void add_quota(Params& to, const std::optional<Quota>& quota);

/// For reserves without other names, all of one generation and with one quota: first one reserve of
/// each record in the order of their ids, then the repeats.
Statement ask_reserves(std::span<const Reserve* const> calls);
/// In the order of the calls; none where the rows lack one.
std::vector<std::optional<CallResult>> results_of_reserves(std::span<const Reserve* const> calls,
                                                           const Rows& rows);

/// Owners' verbs (store/verb_traits.hpp), likewise.
const RecordId& id_of_owners(const StoreCall& call);
Statement ask_owners(std::span<const StoreCall* const> calls);
std::vector<std::optional<CallResult>> results_of_owners(std::size_t calls, const Rows& rows);

/// Likewise; each call for another record.
Statement ask_finds(std::span<const Find* const> calls);
std::vector<CallResult> results_of_finds(std::span<const Find* const> calls, const Rows& rows);

Statement ask_evidence(std::span<const ReadEvidence* const> calls);
std::vector<CallResult> results_of_evidence(std::size_t calls, const Rows& rows);

/// Any other call but AdoptRoutes; also a single reserve.
Statement ask_one(const StoreCall& call);
CallResult results_of_one(const StoreCall& call, const Rows& rows);

}  // namespace idem::postgres
