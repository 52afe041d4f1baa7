#pragma once

#include "store/change_notifier.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/lineage.hpp"

#include <map>
#include <optional>

namespace idem::postgres {

/// Reads all records that have a waiter here in one statement, and notifies the watcher of those
/// that another node or a service changed. Sends nothing while there is no waiter.
class ChangePoller final : Timed {
 public:
  ChangePoller(Loop& loop, std::string uri, const Uuid& store_id, std::shared_ptr<Lineage> lineage,
               ChangeNotifier& changes);

  void stop() noexcept { stopped_ = true; }

 private:
  /// The members whose change wakes a waiter.
  struct WaitedState {
    std::string state;
    std::int64_t fence;
    StoreTime locked_until;
    bool operator==(const WaitedState&) const = default;
  };
  using Seen = std::map<RecordId, std::optional<WaitedState>>;  ///< None: there is no record.

  void tick(MonotonicTime now) override;
  Task<void> poll(std::vector<RecordId> ids);

  const Uuid store_id_;
  const std::shared_ptr<Lineage> lineage_;
  ChangeNotifier& changes_;
  Connection connection_;
  Seen seen_;
  bool is_polling_ = false;
  bool stopped_ = false;
  MonotonicTime next_{};
  std::int64_t timeline_ = 0;  ///< Of its server.
};

}  // namespace idem::postgres
