#pragma once

#include "store/change_notifier.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/lineage.hpp"

#include <map>
#include <optional>

namespace idem::postgres {

/// Looks at the records that somebody here waits for, all in one statement, and tells those that
/// another node or a service settled. Asks nothing while nobody waits.
class ChangePoller final : Timed {
 public:
  ChangePoller(Loop& loop, std::string uri, const Uuid& store_id, std::shared_ptr<Lineage> lineage,
               ChangeNotifier& changes);

  void stop() noexcept { stopped_ = true; }

 private:
  /// All that a waiter cares about; none: there is no such record.
  struct WaitedState {
    std::string state;
    std::int64_t fence;
    StoreTime locked_until;
    bool operator==(const WaitedState&) const = default;
  };
  using Seen = std::map<RecordId, std::optional<WaitedState>>;

  void tick(MonotonicTime now) override;
  Task<void> look(std::vector<RecordId> ids);

  const Uuid store_id_;
  const std::shared_ptr<Lineage> lineage_;
  ChangeNotifier& changes_;
  Connection connection_;
  Seen seen_;
  bool looking_ = false;
  bool stopped_ = false;
  MonotonicTime next_{};
  std::int64_t timeline_ = 0;  ///< Of the server that it reached.
};

}  // namespace idem::postgres
