#pragma once

#include "store/mysql/session.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace idem::mysql {

/// The pool of sessions for callers' transactions: made on demand, kept, and closed if anything is
/// wrong with them. Safe from any thread.
class Sessions {
 public:
  Sessions(Url url, const StoreId& store_id, std::shared_ptr<ServerInUse> in_use)
      : url_(std::move(url)), store_id_(store_id), in_use_(std::move(in_use)) {}

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

   private:
    Sessions* from_;
    std::unique_ptr<Session> session_;
  };

  /// Blocks while all are in use, transaction_wait_max at most, and while a new one connects. While
  /// no server is in reach the error comes at once; it is for people.
  std::expected<Taken, std::string> take();

 private:
  void give_back(std::unique_ptr<Session> session);
  /// Opens a session that is counted already; a failure subtracts it again.
  std::expected<Taken, std::string> make();

  const Url url_;
  const StoreId store_id_;
  const std::shared_ptr<ServerInUse> in_use_;

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Session>> idle_;
  std::size_t made_ = 0;
  std::string why_out_of_reach_;         ///< Empty: the last one could be opened.
  std::uint64_t turn_out_of_reach_ = 0;  ///< Of ServerInUse, when it could not.
  MonotonicTime retry_at_{};
  Millis backoff_{};
};

}  // namespace idem::mysql
