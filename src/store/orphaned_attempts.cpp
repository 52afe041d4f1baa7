#include "store/orphaned_attempts.hpp"

#include <idem/health_limits.hpp>

namespace idem {

void OrphanedAttempts::take(AskedFor asked, const StoreResult& reply) {
  const MonotonicTime until = MonotonicClock::now() + asked.lease;
  if (!reply) {
    // A claim names no record. Its request is pending again at the end of the lease.
    const bool is_named = !(asked.id == RecordId{});
    if (reply.error().code != StoreError::Code::in_doubt || !is_named) return;
    return release({std::move(asked), {}, 0, until, {}});
  }
  std::optional<Fence> fence;
  if (const auto* outcome = std::get_if<ReserveOutcome>(&*reply)) {
    const auto* const execute = std::get_if<Execute>(outcome);
    if (execute == nullptr) return;
    asked.id = execute->id;
    fence = execute->attempt.fence;
  } else if (const auto* claimed = std::get_if<std::optional<Claimed>>(&*reply)) {
    if (!*claimed) return;
    asked.id = (*claimed)->id;
    fence = (*claimed)->attempt.fence;
  } else {
    return;
  }
  asked.others.clear();
  release({std::move(asked), fence, 0, until, {}});
}

void OrphanedAttempts::release(Orphan orphan) {
  const RecordId id = orphan.tried == 0 ? orphan.asked.id : orphan.asked.others[orphan.tried - 1];
  Release verb{
      id, {orphan.fence, orphan.asked.token}, ReleaseBasis::proven, "reserve_came_late", Millis{}};
  store_.call(StoreCall(std::move(verb)),
              [this, orphan = std::move(orphan)](const StoreResult& reply) mutable {
                answered(std::move(orphan), reply);
              });
}

void OrphanedAttempts::answered(Orphan orphan, const StoreResult& reply) {
  if (!reply) {
    if (reply.error().is_final()) return;
    return keep(std::move(orphan));
  }
  // With its fence the attempt is known to have been there: whatever the verdict, it has ended.
  const auto* const owner = std::get_if<OwnerReply>(&*reply);
  const bool is_gone = owner == nullptr || owner->verdict != Verdict::stale || orphan.fence;
  if (is_gone) return;
  if (orphan.tried < orphan.asked.others.size()) {
    ++orphan.tried;
    return release(std::move(orphan));
  }
  // A server may still work on a reserve whose connection is gone, and commit it.
  orphan.tried = 0;
  keep(std::move(orphan));
}

void OrphanedAttempts::keep(Orphan orphan) {
  const auto now = MonotonicClock::now();
  if (!orphan.fence && now >= orphan.until) return;
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= limits::orphans_max) return;
  orphan.due = now + interval_;
  waiting_.push_back(std::move(orphan));
}

std::optional<MonotonicTime> OrphanedAttempts::next() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() ? std::nullopt : std::optional(waiting_.front().due);
}

void OrphanedAttempts::try_again(MonotonicTime now) {
  std::list<Orphan> due;
  {
    const std::lock_guard lock(mutex_);
    auto end = waiting_.begin();
    while (end != waiting_.end() && end->due <= now) ++end;
    due.splice(due.begin(), waiting_, waiting_.begin(), end);
  }
  for (Orphan& orphan : due) release(std::move(orphan));
}

}  // namespace idem
