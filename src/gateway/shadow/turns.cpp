#include "gateway/shadow/turns.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <utility>

namespace idem::gateway {

std::shared_ptr<Turns::Turn> Turns::take(const RecordId& id) {
  const std::lock_guard lock(mutex_);
  Taken& of_key = taken_[id];
  if (of_key.size() >= limits::shadow_turns_max) return nullptr;
  return of_key.emplace_back(std::make_shared<Turn>());
}

bool Turns::is_over(const Turn& turn) const {
  const std::lock_guard lock(mutex_);
  return turn.is_over;
}

Turns::Taken Turns::taken(const RecordId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(id);
  return found == taken_.end() ? Taken{} : found->second;
}

void Turns::end(const RecordId& id, const std::shared_ptr<Turn>& turn) {
  decltype(Turn::waiting) waiting;
  {
    const std::lock_guard lock(mutex_);
    turn->is_over = true;
    waiting.swap(turn->waiting);
    if (const auto found = taken_.find(id); found != taken_.end()) {
      std::erase(found->second, turn);
      if (found->second.empty()) taken_.erase(found);
    }
  }
  for (auto& then : waiting) then();
}

void Turns::when_over(const std::shared_ptr<Turn>& turn, std::move_only_function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (!turn->is_over) {
      turn->waiting.push_back(std::move(then));
      return;
    }
  }
  then();
}

// What is dropped may call end() again, so nothing is dropped under the lock.
void Turns::close() {
  std::vector<decltype(Turn::waiting)> dropped;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, turns] : taken_) {
      for (auto& turn : turns) dropped.push_back(std::exchange(turn->waiting, {}));
    }
    taken_.clear();
  }
  dropped.clear();
}

}  // namespace idem::gateway
