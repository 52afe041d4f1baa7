#pragma once

#include "store/compare_and_set/due.hpp"
#include "store/redis/retrying_client.hpp"

/// Queries over many or all records: each record as it is when it is read, not as of one moment.
/// Loop's thread only.
namespace idem::redis {

using compare_and_set::Due;
using compare_and_set::DueResult;
using compare_and_set::Work;

class ScanQueries {
 public:
  ScanQueries(RetryingClient& client, const Names& names) : client_(client), names_(names) {}

  Task<std::expected<std::vector<EvidenceEntry>, StoreError>> evidence(RecordId id);

  /// Up to `limit` records whose moment in `set` has come, the longest due first.
  Task<DueResult> due(std::string_view set, StoreTime now, std::size_t limit);
  /// Moves a record that cannot be read to the end of `set`, so that due() does not return it.
  Task<void> hide(std::string_view set, RecordId id);

  Task<std::expected<std::vector<Record>, StoreError>> list(List verb, StoreTime now);

  /// Without `now` and the leases that ended, which the caller adds.
  Task<std::expected<Census, StoreError>> count();

  /// The current version of each record, empty if there is none. None: a server did not answer.
  Task<std::optional<std::vector<std::string>>> versions(std::vector<RecordId> ids);

 private:
  using Ids = std::vector<RecordId>;
  Task<std::expected<Ids, StoreError>> ids_in(std::size_t bucket, std::optional<State> state);
  Task<std::expected<std::vector<Record>, StoreError>> read(std::span<const RecordId> ids);
  /// The server has evicted some.
  Task<std::expected<bool, StoreError>> has_lost_records(std::size_t bucket);

  RetryingClient& client_;
  const Names& names_;
};

}  // namespace idem::redis
