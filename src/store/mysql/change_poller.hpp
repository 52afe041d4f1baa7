#pragma once

#include "store/change_notifier.hpp"
#include "store/mysql/queries.hpp"
#include "store/mysql/servers.hpp"

#include <map>

namespace idem::mysql {

/// Reads the awaited records at intervals, over a connection of its own, and notifies the watcher
/// of changes: other processes write, too.
class ChangePoller final : Timed {
 public:
  ChangePoller(Loop& loop, const Url& url, Servers& servers, ChangeNotifier& changes);

  void stop() noexcept { stopped_ = true; }

 private:
  void tick(MonotonicTime now) override;
  Task<void> poll(std::vector<RecordId> ids);

  Servers& servers_;
  ChangeNotifier& changes_;
  Link link_;
  std::map<RecordId, std::optional<WaitedState>> seen_;
  bool is_polling_ = false;
  bool stopped_ = false;
};

}  // namespace idem::mysql
