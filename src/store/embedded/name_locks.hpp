#pragma once

#include "store/record_rows.hpp"

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace idem::embedded {

/// Keeps names of records for one reserve that asks several shards: no other reserve that could
/// make a record of such a name comes in between. Nobody blocks: what has to wait goes on where the
/// lock is given back. Any thread may use it.
class NameLocks {
 public:
  using Going = std::move_only_function<void()>;

  /// Calls `go` as soon as nobody has `id`; what it pushes is in its queue before anybody gets the
  /// lock.
  template <class Go>
  void pass(const RecordId& id, Go go) {
    Part& part = part_of(id);
    const std::lock_guard lock(part.mutex);
    const auto taken = part.taken.find(id);
    if (taken == part.taken.end()) return go();
    taken->second.push_back({Going(std::move(go)), false});
  }

  /// Calls `go` once all of `ids` are taken. They are sorted, and each is there once.
  void take(std::shared_ptr<const std::vector<RecordId>> ids, Going go) {
    take_from(0, std::move(ids), std::move(go));
  }
  void give_back(const std::vector<RecordId>& ids);

 private:
  struct Waiter {
    Going go;
    bool takes = false;  ///< It has the lock when it goes on.
  };
  struct Part {
    std::mutex mutex;
    std::unordered_map<RecordId, std::deque<Waiter>, IdHash> taken;
  };

  Part& part_of(const RecordId& id) { return parts_[IdHash()(id) % parts_.size()]; }
  void take_from(std::size_t next, std::shared_ptr<const std::vector<RecordId>> ids, Going go);
  void give_back(const RecordId& id);

  std::array<Part, 256> parts_;
};

}  // namespace idem::embedded
