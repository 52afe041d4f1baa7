#pragma once

#include "core/record/which_store.hpp"
#include "store/sql_server/backoff.hpp"

#include <condition_variable>
#include <expected>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace idem::sql_server {

/// The pool of sessions for callers' transactions: made on demand, kept, and closed if anything is
/// wrong with them. Safe from any thread.
///
/// `Session` is made of an `Address`, and has, with a `Server` that tells which server the store
/// uses:
///  - `std::expected<void, std::string> open(const StoreId&, Server&)`, which may block;
///  - `bool is_current()`: it leads to the server in use;
///  - `bool is_still_there()`: the server has not ended it;
///  - `bool may_be_kept()`: it is open, and in no transaction;
///  - `static auto turn_of(const Server&)`: another value after the store has gone to another one;
///  - `static void doubt(Server&)`: a session met a server that it could not use.
template <class Session>
class Sessions {
 public:
  using Address = typename Session::Address;
  using Server = typename Session::Server;

  Sessions(Address address, const StoreId& store_id, std::shared_ptr<Server> server)
      : address_(std::move(address)), store_id_(store_id), server_(std::move(server)) {}

  /// One session, for its holder alone while this lives.
  class Taken {
   public:
    Taken(Sessions& from, std::unique_ptr<Session> session)
        : from_(&from), session_(std::move(session)) {}
    Taken(Taken&&) = default;
    Taken& operator=(Taken&&) = delete;
    ~Taken() {
      if (session_) from_->give_back(std::move(session_));
    }
    Session& operator*() const noexcept { return *session_; }
    Session* operator->() const noexcept { return session_.get(); }

   private:
    Sessions* from_;
    std::unique_ptr<Session> session_;
  };

  /// Blocks while all are in use, transaction_wait_max at most, and while a new one connects. While
  /// no server is in reach the error comes at once; it is for people.
  std::expected<Taken, std::string> take() {
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
    const bool is_same_server = turn_out_of_reach_ == Session::turn_of(*server_);
    if (!why_out_of_reach_.empty() && is_same_server && MonotonicClock::now() < retry_at_) {
      freed_.notify_one();  // The place is free for the next waiter.
      return std::unexpected(why_out_of_reach_);
    }
    ++made_;
    lock.unlock();
    return make();
  }

 private:
  void give_back(std::unique_ptr<Session> session) {
    if (!session->is_open()) Session::doubt(*server_);
    // Its user may have left a transaction open: to close the session rolls it back.
    if (!session->may_be_kept()) session.reset();
    const std::lock_guard lock(mutex_);
    if (session) {
      idle_.push_back(std::move(session));
    } else {
      --made_;
    }
    freed_.notify_one();
  }

  /// Opens a session that is counted already; a failure subtracts it again.
  std::expected<Taken, std::string> make() {
    auto session = std::make_unique<Session>(address_);
    const auto turn = Session::turn_of(*server_);
    auto opened = session->open(store_id_, *server_);
    const std::lock_guard lock(mutex_);
    if (opened) {
      why_out_of_reach_.clear();
      return Taken(*this, std::move(session));
    }
    Session::doubt(*server_);
    --made_;
    freed_.notify_one();
    backoff_ = next_backoff(why_out_of_reach_.empty() ? Millis(0) : backoff_);
    why_out_of_reach_ = "the store cannot be reached: " + opened.error();
    turn_out_of_reach_ = turn;
    retry_at_ = MonotonicClock::now() + with_jitter(backoff_);
    return std::unexpected(why_out_of_reach_);
  }

  const Address address_;
  const StoreId store_id_;
  const std::shared_ptr<Server> server_;

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Session>> idle_;
  std::size_t made_ = 0;
  std::string why_out_of_reach_;  ///< Empty: the last one could be opened.
  decltype(Session::turn_of(std::declval<const Server&>())) turn_out_of_reach_{};
  MonotonicTime retry_at_{};
  Millis backoff_{};
};

}  // namespace idem::sql_server
