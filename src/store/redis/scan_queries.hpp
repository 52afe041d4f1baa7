#pragma once

#include "store/redis/retrying_client.hpp"

/// What reads many records, or all: of the state in which each lies when it is read, not of one
/// moment. Loop's thread only.
namespace idem::redis {

/// The first of a set of each bucket.
struct Due {
  StoreTime at;
  RecordId id;
};

class ScanQueries {
 public:
  ScanQueries(RetryingClient& asking, const Names& names) : client_(asking), names_(names) {}

  Task<std::expected<std::vector<EvidenceEntry>, StoreError>> evidence(RecordId id);

  /// Up to `limit` of those whose moment in `set` has come, the longest due first.
  Task<std::expected<std::vector<Due>, StoreError>> due(std::string_view set, StoreTime now,
                                                        std::size_t limit);
  /// Puts a record that cannot be read, or is not there, where it stands in nobody's way.
  Task<void> hide(std::string_view set, RecordId id, bool is_there);

  Task<std::expected<std::vector<Record>, StoreError>> list(List verb, StoreTime now);

  /// `now` and the leases that ended are the caller's to add.
  Task<std::expected<Census, StoreError>> count();

  /// The version under which each of them lies, empty where there is none; none: nobody could be
  /// asked.
  Task<std::optional<std::vector<std::string>>> versions(std::vector<RecordId> ids);

 private:
  using Ids = std::vector<RecordId>;
  Task<std::expected<Ids, StoreError>> ids_in(std::size_t bucket, std::optional<State> state);
  Task<std::expected<std::vector<Record>, StoreError>> read(std::span<const RecordId> ids);

  RetryingClient& client_;
  const Names& names_;
};

}  // namespace idem::redis
