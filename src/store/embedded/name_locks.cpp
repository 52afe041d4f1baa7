#include "store/embedded/name_locks.hpp"

namespace idem::embedded {

// All take in the order of the ids, so that no two wait for each other.
void NameLocks::take_from(std::size_t next, std::shared_ptr<const std::vector<RecordId>> ids,
                          Going go) {
  for (; next < ids->size(); ++next) {
    const RecordId& id = (*ids)[next];
    Part& part = part_of(id);
    const std::lock_guard lock(part.mutex);
    const auto [taken, is_mine] = part.taken.try_emplace(id);
    if (is_mine) continue;
    taken->second.push_back({[this, next, ids, go = std::move(go)]() mutable {
                               take_from(next + 1, std::move(ids), std::move(go));
                             },
                             true});
    return;
  }
  go();
}

void NameLocks::give_back(const std::vector<RecordId>& ids) {
  for (const RecordId& id : ids) give_back(id);
}

void NameLocks::give_back(const RecordId& id) {
  Part& part = part_of(id);
  Going next;
  {
    const std::lock_guard lock(part.mutex);
    const auto taken = part.taken.find(id);
    std::deque<Waiter>& waiters = taken->second;
    while (!waiters.empty() && !waiters.front().takes) {
      waiters.front().go();
      waiters.pop_front();
    }
    if (waiters.empty()) {
      part.taken.erase(taken);
      return;
    }
    next = std::move(waiters.front().go);
    waiters.pop_front();
  }
  next();
}

}  // namespace idem::embedded
