#include "store/call_queue.hpp"

#include "store/verb_traits.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <iterator>

namespace idem {
StoreResult queue_is_full() {
  return std::unexpected(StoreError{StoreError::Code::unavailable, "the store's queue is full"});
}

void CallQueue::push(StoreCall call, StoreCompletion done) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    pushed_.fetch_add(1, std::memory_order_release);
    const bool is_deferred = traits_of(call).is_deferred;
    if (!is_deferred) asked_.fetch_add(1, std::memory_order_relaxed);
    if (waiting_ >= limits::store_queue_max && traits_of(call).is_new_work) {
      turned_away_.push_back(std::move(done));
    } else {
      if (is_deferred && deferred_.empty()) {
        deferred_until_ = MonotonicClock::now() + limits::store_patience;
      }
      auto& to = is_deferred ? deferred_ : incoming_;
      to.push_back({std::move(call), std::move(done), nullptr});
      ++waiting_;
    }
    wake = std::exchange(asleep_, false);
  }
  if (wake) Turn::wake_at_end(bell_);
}

void CallQueue::push(StoreTask& task, StoreCompletion done) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    pushed_.fetch_add(1, std::memory_order_release);
    asked_.fetch_add(1, std::memory_order_relaxed);
    incoming_.push_back({Find{}, std::move(done), &task});
    ++waiting_;
    wake = std::exchange(asleep_, false);
  }
  if (wake) Turn::wake_at_end(bell_);
}

CallQueue::Batch CallQueue::take(bool wait) {
  const bool exhausted = next_ == taken_.size();
  if (exhausted) {
    taken_.clear();  // Outside the lock: what it destroys may be large.
    next_ = 0;
  }
  Batch batch;
  std::unique_lock lock(mutex_);
  if (exhausted) {
    while (wait && incoming_.empty() && turned_away_.empty() && !closed_) {
      asleep_ = true;
      if (deferred_.empty()) {
        bell_->rung.wait(lock);
      } else if (bell_->rung.wait_until(lock, deferred_until_) == std::cv_status::timeout) {
        break;
      }
    }
    asleep_ = false;
    taken_.swap(incoming_);
    std::ranges::move(deferred_, std::back_inserter(taken_));
    deferred_.clear();
  }
  const std::size_t size = std::min(limits::commit_group_max, taken_.size() - next_);
  batch.calls = std::span(taken_).subspan(next_, size);
  next_ += size;
  waiting_ -= size;
  batch.turned_away.swap(turned_away_);
  batch.last = closed_ && waiting_ == 0 && batch.calls.empty() && batch.turned_away.empty();
  return batch;
}

void CallQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  bell_->wake();
}

}  // namespace idem
