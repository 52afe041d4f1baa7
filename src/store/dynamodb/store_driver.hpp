#pragma once

#include "store/change_notifier.hpp"
#include "store/dynamodb/journal_steps.hpp"
#include "store/dynamodb/scan_queries.hpp"
#include "store/dynamodb/steps.hpp"
#include "store/dynamodb/table_check.hpp"

#include <map>

namespace idem::dynamodb {

/// Answers the store's calls, and does its periodic work. Loop's thread only.
class StoreDriver final : Timed {
 public:
  StoreDriver(Loop& loop, ChangeNotifier& changes, Url url, const DynamodbOptions& options);

  Task<std::expected<Identity, std::string>> open(IdentitySettings settings);

  /// Answers `call`, and notifies the watcher of its changes.
  Task<void> serve(StoreCall call, StoreCompletion done);

  /// Adds what it has counted to the counters.
  Task<void> flush();
  void close();

 private:
  void tick(MonotonicTime now) override;
  Task<StoreResult> answer(StoreCall& call);
  Task<StoreResult> find(RecordId id);
  Task<StoreResult> read_evidence(RecordId id);
  Task<StoreResult> claim(StoreCall& call);
  Task<StoreResult> sweep(std::size_t limit);
  Task<StoreResult> reap(std::size_t limit);
  Task<StoreResult> lifecycle(std::string lists, StoreCall one, std::size_t limit);
  Task<void> end_one(RecordId id, const StoreCall& one, std::vector<LifecycleStep>& steps,
                     struct Ends& ends);
  Task<StoreResult> count();
  Task<StoreResult> list(List verb);
  Task<StoreResult> adopt(AdoptRoutes verb);
  Task<void> poll_awaited(std::vector<RecordId> ids);
  Task<void> refresh_identity();

  ChangeNotifier& changes_;
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
  std::map<RecordId, std::string> seen_;  ///< Versions of the awaited records.
  std::size_t next_bucket_ = 0;           ///< Whose orphans the next sweep removes.
  bool is_open_ = false;
  bool is_polling_ = false;
  MonotonicTime poll_at_{};
  bool is_refreshing_ = false;
  bool is_closed_ = false;
};

}  // namespace idem::dynamodb
