#include "store/postgres/change_poller.hpp"

#include "store/postgres/cells.hpp"
#include "store/postgres/opening.hpp"

#include <idem/limits.hpp>

namespace idem::postgres {

ChangePoller::ChangePoller(Loop& loop, std::string uri, const Uuid& store_id,
                           std::shared_ptr<Lineage> lineage, ChangeNotifier& changes)
    : Timed(loop),
      store_id_(store_id),
      lineage_(std::move(lineage)),
      changes_(changes),
      connection_(loop, std::move(uri)) {}

void ChangePoller::tick(MonotonicTime now) {
  Watcher* const watcher = changes_.watcher();
  if (watcher == nullptr || is_polling_ || stopped_ || now < next_) return;
  auto ids = watcher->awaited();
  if (ids.empty()) return seen_.clear();
  is_polling_ = true;
  // Posted: a spawned poll may end at once, and a tick must not make or destroy another Timed.
  loop_.post([this, ids = std::move(ids)]() mutable { loop_.spawn(poll(std::move(ids))); });
}

Task<void> ChangePoller::poll(std::vector<RecordId> ids) {
  if (timeline_ < lineage_->timeline()) connection_.close();
  if (!connection_.is_open()) {
    bool is_checked = false;
    const auto opened = co_await connection_.open(limits::store_connect_max);
    if (opened) {
      // A deposed primary's records never change.
      const auto checked = co_await check_again(connection_, store_id_, *lineage_);
      is_checked = checked.has_value();
      if (is_checked) timeline_ = *checked;
    }
    if (!is_checked) connection_.close();
    if (!is_checked) next_ = MonotonicClock::now() + limits::store_reconnect_max;
  }
  if (connection_.is_open()) {
    Params params;
    params.array(Type::uuid_array);
    for (const RecordId& id : ids) params.append_uuid(id.bytes);
    const QueryResult answer = co_await connection_.ask("SELECT * FROM idem.waited_states($1)",
                                                        params, limits::store_reply_max);
    if (answer) {
      Seen now;
      for (const RecordId& id : ids) now[id] = std::nullopt;
      for (int row = 0; row < answer->size(); ++row) {
        Cells cells(*answer, row);
        const RecordId id = cells.id();
        std::string state(cells.bytes());
        const auto fence = cells.number();
        now[id] = WaitedState{std::move(state), fence, cells.moment()};
      }
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

}  // namespace idem::postgres
