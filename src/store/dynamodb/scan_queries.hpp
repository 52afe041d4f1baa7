#pragma once

#include "store/compare_and_set/due.hpp"
#include "store/dynamodb/identity_steps.hpp"
#include "store/dynamodb/table.hpp"

#include <functional>
#include <string_view>

/// Queries over many or all records: each record as it is when it is read, not as of one moment.
/// The indexes are eventually consistent, so they only propose records; each one is then read or
/// written by itself. Loop's thread only.
namespace idem::dynamodb {

using compare_and_set::Due;
using compare_and_set::DueResult;
using compare_and_set::Work;

class ScanQueries {
 public:
  explicit ScanQueries(Client& client) : client_(client) {}

  /// Up to `limit` records of these lists whose moment has come, the longest due first.
  Task<DueResult> due(std::string lists, StoreTime now, std::size_t limit);
  /// Likewise the pending requests that may be claimed.
  Task<DueResult> claimable(StoreTime now, std::size_t limit);
  /// Moves a record that cannot be read to the end of its list, so that due() does not return it,
  /// or claimable().
  Task<void> hide(RecordId id, bool from_claims);

  Task<std::expected<std::vector<Record>, StoreError>> list(List verb, StoreTime now);
  Task<std::expected<std::optional<StoreTime>, StoreError>> oldest_unknown();
  /// The records in the list of this state.
  Task<std::expected<std::uint64_t, StoreError>> count(State state);

  /// The live records' operations and generations.
  Task<std::expected<Holdings, NoReply>> survey(IdentitySteps::Beat beat,
                                                std::function<std::optional<StoreTime>()> now);

  /// The current version of each record, empty if there is none. None: the service did not answer.
  Task<std::optional<std::vector<std::string>>> versions(std::vector<RecordId> ids);

 private:
  struct Index {
    std::string_view name;
    std::string_view list;
    std::string_view moment;
  };
  using Rows = std::expected<std::vector<Record>, StoreError>;

  Task<DueResult> due_in(Index index, std::vector<std::string> parts, StoreTime now,
                         std::size_t limit);
  /// All ids of a state's list, in order.
  Task<std::expected<std::vector<RecordId>, StoreError>> ids_in(char list);
  Task<Rows> read(std::vector<RecordId> ids);
  Task<Rows> list_of_index(List verb, char list, StoreTime now);
  Task<Rows> list_of_table(List verb, StoreTime now);
  std::string bucket_query(std::size_t bucket, const std::optional<RecordId>& after,
                           std::size_t limit, const std::string& from) const;

  Client& client_;
};

}  // namespace idem::dynamodb
