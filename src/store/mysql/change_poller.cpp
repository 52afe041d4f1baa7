#include "store/mysql/change_poller.hpp"

namespace idem::mysql {

ChangePoller::ChangePoller(Loop& loop, const Url& url, Servers& servers, ChangeNotifier& changes)
    : Timed(loop), servers_(servers), changes_(changes), link_(loop, url) {}

void ChangePoller::tick(MonotonicTime) {
  Watcher* const watcher = changes_.watcher();
  if (watcher == nullptr || is_polling_ || stopped_) return;
  auto ids = watcher->awaited();
  if (ids.empty()) return seen_.clear();
  is_polling_ = true;
  // Posted: a spawned poll may end at once, and a tick must not make or destroy another Timed.
  loop_.post([this, ids = std::move(ids)]() mutable { loop_.spawn(poll(std::move(ids))); });
}

Task<void> ChangePoller::poll(std::vector<RecordId> ids) {
  auto reaching = servers_.reach(link_);
  const bool is_reached = co_await std::move(reaching);
  if (is_reached) {
    auto asking = waited_states(link_.connection, ids);
    auto states = co_await std::move(asking);
    if (states) {
      std::map<RecordId, std::optional<WaitedState>> now;
      for (const RecordId& id : ids) now[id] = std::nullopt;
      for (auto& [id, state] : *states) now[id] = std::move(state);
      // A record that is new here may have changed since its waiter read it.
      for (const auto& [id, state] : now) {
        const auto before = seen_.find(id);
        if (before == seen_.end() || before->second != state) changes_.watcher()->changed(id);
      }
      seen_ = std::move(now);
    }
  }
  is_polling_ = false;
}

}  // namespace idem::mysql
