#pragma once

#include "store/compare_and_set/calls.hpp"
#include "store/redis/journal_steps.hpp"
#include "store/redis/redis_store.hpp"
#include "store/redis/scan_queries.hpp"
#include "store/redis/server_check.hpp"
#include "store/redis/steps.hpp"
#include "store/redis/work_lists.hpp"

namespace idem::redis {

/// Answers the store's calls, and does its periodic work. Loop's thread only.
class StoreDriver final : Timed, public compare_and_set::Calls<StoreDriver> {
 public:
  StoreDriver(Loop& loop, ChangeNotifier& changes, Url url, const RedisOptions& options);

  Task<std::expected<Identity, std::string>> open(IdentitySettings settings);

  /// Each step has written all that it counts.
  static Task<void> flush() { co_return; }
  void close();

 private:
  friend class compare_and_set::Calls<StoreDriver>;
  static constexpr std::size_t claims_seen_max = limits::redis_claims_seen_max;

  void tick(MonotonicTime now) override;
  Task<std::expected<StoreTime, StoreError>> now_of_lists();
  Task<DueResult> due(Work work, StoreTime now, std::size_t limit);
  Task<void> hide(Work work, RecordId id);
  /// The scripts compare the generation that the request has.
  static Task<std::optional<Subject>> claiming() { co_return Subject{.needs_request = true}; }
  Task<std::optional<std::vector<std::string>>> versions(std::vector<RecordId> ids) {
    return scans_.versions(std::move(ids));
  }
  Task<StoreResult> read_evidence(RecordId id);
  Task<StoreResult> sweep(std::size_t limit);
  Task<StoreResult> reap(std::size_t limit);
  Task<void> reap_all();
  Task<StoreResult> count();
  Task<StoreResult> list(List verb);
  Task<StoreResult> adopt(AdoptRoutes verb);

  Task<std::optional<std::string>> check(Connection& connection);
  /// Why a crash of the server would lose more than one at this process's start; empty: it is not
  /// so.
  std::string why_weaker(const ServerCheck& checked) const;
  Task<std::optional<std::string>> check_identity(Connection& connection);
  Task<void> check_again();

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
  ServerCheck::Loss accepted_loss_{};  ///< At the start.
  std::string why_refused_;            ///< New work, as it was warned of.
  bool is_checking_ = false;
  bool is_closed_ = false;
  MonotonicTime check_at_ = MonotonicTime::max();
};

}  // namespace idem::redis

extern template class idem::compare_and_set::Calls<idem::redis::StoreDriver>;
