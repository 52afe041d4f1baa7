#pragma once

#include "store/compare_and_set/calls.hpp"
#include "store/dynamodb/journal_steps.hpp"
#include "store/dynamodb/scan_queries.hpp"
#include "store/dynamodb/steps.hpp"
#include "store/dynamodb/table_check.hpp"

namespace idem::dynamodb {

/// Answers the store's calls, and does its periodic work. Loop's thread only.
class StoreDriver final : Timed, public compare_and_set::Calls<StoreDriver> {
 public:
  StoreDriver(Loop& loop, ChangeNotifier& changes, Url url, const DynamodbOptions& options);

  Task<std::expected<Identity, std::string>> open(IdentitySettings settings);

  /// Adds what it has counted to the counters.
  Task<void> flush();
  void close();

 private:
  friend class compare_and_set::Calls<StoreDriver>;
  static constexpr std::size_t claims_seen_max = limits::dynamodb_claims_seen_max;

  void tick(MonotonicTime now) override;
  Task<std::expected<StoreTime, StoreError>> now_of_lists();
  Task<DueResult> due(Work work, StoreTime now, std::size_t limit);
  Task<void> hide(Work work, RecordId id) { return scans_.hide(id, work == Work::claim); }
  Task<std::optional<Subject>> claiming();
  Task<std::optional<std::vector<std::string>>> versions(std::vector<RecordId> ids) {
    return scans_.versions(std::move(ids));
  }
  Task<StoreResult> read_evidence(RecordId id);
  Task<StoreResult> sweep(std::size_t limit);
  Task<StoreResult> reap(std::size_t limit);
  Task<StoreResult> count();
  Task<StoreResult> list(List verb);
  Task<StoreResult> adopt(AdoptRoutes verb);
  Task<void> refresh_identity();

  DynamodbOptions options_;
  std::string place_;  ///< For people.
  Client client_;
  RowVersions versions_;
  IdentitySteps identity_;
  Tallies tallies_;
  Steps steps_;
  ScanQueries scans_;
  Pieces pieces_;
  JournalSteps journals_;

  IdentitySettings settings_;
  std::size_t next_bucket_ = 0;  ///< Whose orphans the next sweep removes.
  bool is_open_ = false;
  bool is_refreshing_ = false;
  bool is_closed_ = false;
};

}  // namespace idem::dynamodb

extern template class idem::compare_and_set::Calls<idem::dynamodb::StoreDriver>;
