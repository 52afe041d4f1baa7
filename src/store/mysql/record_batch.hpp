#pragma once

#include "store/mysql/connection.hpp"
#include "store/mysql/lanes.hpp"
#include "store/mysql/locked_records.hpp"

#include <optional>

/// The steps of calls in one transaction.
namespace idem::mysql {

using sql_server::CallResult;

/// Why a transaction came to nothing.
struct Undone {
  Failure failure;
  bool is_read_only = false;  ///< The server accepts no writes any more.
  bool is_too_large = false;  ///< Its text is longer than the server takes.
};
using Committed = std::expected<std::vector<CallResult>, Undone>;

/// What a transaction needs to know of its connection and its process.
struct Terms {
  Connection& connection;
  std::size_t packet_max = 0;
  Fence& last_fence;
};

/// Makes the steps of the calls, and commits. After a failure with a connection that is still open
/// no transaction is.
Task<Committed> make_steps(Terms terms, const std::vector<Waiting>& calls);

/// One step over each of these records that can be locked, in their order: of a Sweep or a Reap.
Task<Committed> make_lifecycle_steps(Terms terms, StoreCall one, std::vector<RecordId> due);

/// Claims the first of these requests that is claimable.
Task<Committed> make_claim(Terms terms, const StoreCall& claim, std::vector<RecordId> due);

}  // namespace idem::mysql
