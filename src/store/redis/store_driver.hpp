#pragma once

#include "store/change_notifier.hpp"
#include "store/redis/journal_steps.hpp"
#include "store/redis/redis_store.hpp"
#include "store/redis/scan_queries.hpp"
#include "store/redis/server_check.hpp"
#include "store/redis/steps.hpp"
#include "store/redis/work_lists.hpp"

#include <map>

namespace idem::redis {

/// Answers the store's calls, and does its periodic work. Loop's thread only.
class StoreDriver final : Timed {
 public:
  StoreDriver(Loop& loop, ChangeNotifier& changes, Url url, const RedisOptions& options);

  Task<std::expected<Identity, std::string>> open(IdentitySettings settings);

  /// Answers `call`, and notifies the watcher of its changes.
  Task<void> serve(StoreCall call, StoreCompletion done);

  /// Each step has written all that it counts.
  static Task<void> flush() { co_return; }
  void close();

 private:
  void tick(MonotonicTime now) override;
  Task<StoreResult> answer(StoreCall& call);
  Task<StoreResult> find(RecordId id);
  Task<StoreResult> read_evidence(RecordId id);
  Task<StoreResult> claim(StoreCall& call);
  Task<StoreResult> sweep(std::size_t limit);
  Task<StoreResult> lifecycle(std::string_view set, StoreCall one, std::size_t limit);
  Task<void> end_one(RecordId id, const StoreCall& one, std::string_view set,
                     std::vector<LifecycleStep>& steps, struct Ends& ends);
  Task<void> reap_all();
  Task<StoreResult> count();
  Task<StoreResult> list(List verb);
  Task<StoreResult> adopt(const AdoptRoutes& verb);

  Task<std::optional<std::string>> check(Connection& connection);
  /// Why a crash of the server would lose more than one at this process's start; empty: it is not
  /// so.
  std::string why_weaker(const ServerCheck& checked) const;
  Task<std::optional<std::string>> check_identity(Connection& connection);
  Task<void> check_again();
  Task<void> poll_awaited(std::vector<RecordId> ids);

  ChangeNotifier& changes_;
  RedisOptions options_;
  bool is_cluster_;
  std::string place_;  ///< For people.
  Names names_;
  Servers servers_;
  RetryingClient client_;
  Versions versions_;
  IdentitySteps identity_;
  Steps steps_;
  ScanQueries scans_;
  WorkLists lists_;
  JournalSteps journals_;

  IdentitySettings settings_;
  std::optional<std::array<std::uint8_t, 16>> store_id_;
  std::vector<std::string> warned_;
  ServerCheck::Loss accepted_loss_{};     ///< At the start.
  std::string why_refused_;               ///< New work, as it was warned of.
  std::map<RecordId, std::string> seen_;  ///< Versions of the awaited records.
  bool is_polling_ = false;
  bool is_checking_ = false;
  bool is_closed_ = false;
  MonotonicTime check_at_ = MonotonicTime::max();
};

}  // namespace idem::redis
