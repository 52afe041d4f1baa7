#pragma once

#include "store/mysql/connection.hpp"

#include <idem/store.hpp>

/// The calls that change no record, and the journals': each on its own, over one connection. The
/// failure is the server's; after one of a journal's a transaction may be open.
namespace idem::mysql {

using Answer = std::expected<StoreResult, Failure>;

/// Finds of one batch, in their order.
Task<std::expected<std::vector<StoreResult>, Failure>> find_many(Connection& connection,
                                                                 std::vector<RecordId> ids);

Task<Answer> list(Connection& connection, List verb);
/// Without the ended leases, which the process counts.
Task<Answer> count(Connection& connection);
Task<Answer> read_evidence_of(Connection& connection, RecordId id);

/// What a step of the lifecycle, or a claim, is to look at: the longest due first. Other nodes may
/// be faster.
enum class Due : std::uint8_t { sweep, reap, claim };
Task<std::expected<std::vector<RecordId>, Failure>> due(Connection& connection, Due what,
                                                        std::size_t limit);

/// Removes rows of scopes whose records are all gone. Waits for no lock.
Task<std::expected<void, Failure>> tidy_usage(Connection& connection);

/// What a waiter waits for.
struct WaitedState {
  std::string state;
  std::string fence;
  std::string locked_until;
  bool operator==(const WaitedState&) const = default;
};
/// Without those that have no record.
Task<std::expected<std::vector<std::pair<RecordId, WaitedState>>, Failure>> waited_states(
    Connection& connection, std::vector<RecordId> ids);

Task<Answer> append_line(Connection& connection, AppendLine verb);
Task<Answer> read_lines(Connection& connection, ReadLines verb);
Task<Answer> list_journals(Connection& connection, ListJournals verb);
Task<Answer> drop_journal(Connection& connection, DropJournal verb);

}  // namespace idem::mysql
