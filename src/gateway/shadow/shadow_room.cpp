#include "gateway/shadow/shadow_room.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <utility>

namespace idem::gateway {

bool ShadowRoom::take_place() noexcept {
  if (places_.fetch_add(1, std::memory_order_acq_rel) < limits::shadow_observations_max) {
    return true;
  }
  give_place();
  return false;
}

bool ShadowRoom::take_bytes(std::size_t bytes) noexcept {
  const std::size_t before = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before <= limits::shadow_bytes_max && bytes <= limits::shadow_bytes_max - before) return true;
  give_bytes(bytes);
  return false;
}

std::shared_ptr<ShadowRoom::End> ShadowRoom::begin_end(const RecordId& id) {
  auto end = std::make_shared<End>();
  const std::lock_guard lock(mutex_);
  ends_[id].push_back(end);
  return end;
}

ShadowRoom::Ends ShadowRoom::ends_of(const RecordId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(id);
  return found == ends_.end() ? Ends{} : found->second;
}

void ShadowRoom::write(const RecordId& id, const std::shared_ptr<End>& end) {
  decltype(End::waiting) waiting;
  {
    const std::lock_guard lock(mutex_);
    end->is_written = true;
    waiting.swap(end->waiting);
    if (const auto found = ends_.find(id); found != ends_.end()) {
      std::erase(found->second, end);
      if (found->second.empty()) ends_.erase(found);
    }
  }
  for (auto& then : waiting) then();
}

void ShadowRoom::when_written(const std::shared_ptr<End>& end,
                              std::move_only_function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (!end->is_written) {
      end->waiting.push_back(std::move(then));
      return;
    }
  }
  then();
}

// What is dropped may call write() again, so nothing is dropped under the lock.
void ShadowRoom::close() {
  std::vector<decltype(End::waiting)> dropped;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, ends] : ends_) {
      for (auto& end : ends) dropped.push_back(std::exchange(end->waiting, {}));
    }
    ends_.clear();
  }
  dropped.clear();
}

}  // namespace idem::gateway
