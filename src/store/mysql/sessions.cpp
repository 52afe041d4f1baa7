#include "store/mysql/sessions.hpp"

#include "store/mysql/failures.hpp"

#include <idem/limits.hpp>

namespace idem::mysql {

std::expected<Sessions::Taken, std::string> Sessions::take() {
  std::unique_lock lock(mutex_);
  const auto is_one_free = [&] {
    return !idle_.empty() || made_ < limits::transaction_connections_max;
  };
  if (!freed_.wait_for(lock, limits::transaction_wait_max, is_one_free)) {
    return std::unexpected("all " + std::to_string(made_) +
                           " connections for transactions are taken");
  }
  while (!idle_.empty()) {
    auto session = std::move(idle_.back());
    idle_.pop_back();
    const bool is_usable = session->is_current() && session->is_still_there();
    if (is_usable) return Taken(*this, std::move(session));
    --made_;
  }
  const bool is_same_server = turn_out_of_reach_ == in_use_->turn();
  if (!why_out_of_reach_.empty() && is_same_server && MonotonicClock::now() < retry_at_) {
    freed_.notify_one();  // The place is free for the next waiter.
    return std::unexpected(why_out_of_reach_);
  }
  ++made_;
  lock.unlock();
  return make();
}

std::expected<Sessions::Taken, std::string> Sessions::make() {
  auto session = std::make_unique<Session>(url_);
  const std::uint64_t turn = in_use_->turn();
  auto opened = session->open(store_id_, *in_use_);
  const std::lock_guard lock(mutex_);
  if (opened) {
    why_out_of_reach_.clear();
    return Taken(*this, std::move(session));
  }
  in_use_->doubt();
  --made_;
  freed_.notify_one();
  backoff_ = next_backoff(why_out_of_reach_.empty() ? Millis(0) : backoff_);
  why_out_of_reach_ = "the store cannot be reached: " + opened.error();
  turn_out_of_reach_ = turn;
  retry_at_ = MonotonicClock::now() + with_jitter(backoff_);
  return std::unexpected(why_out_of_reach_);
}

void Sessions::give_back(std::unique_ptr<Session> session) {
  // Its user may have left a transaction open: to close the session rolls it back.
  if (!session->is_open()) in_use_->doubt();
  if (!session->is_open() || session->is_in_transaction()) session.reset();
  const std::lock_guard lock(mutex_);
  if (session) {
    idle_.push_back(std::move(session));
  } else {
    --made_;
  }
  freed_.notify_one();
}

}  // namespace idem::mysql
