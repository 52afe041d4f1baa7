#pragma once

#include "store/redis/rows.hpp"
#include "store/redis/servers.hpp"

#include <vector>

/// Questions to the servers that hold a store, with what the servers say about themselves dealt
/// with: scripts that they have forgotten, moments in which they cannot answer.
namespace idem::redis {

/// Where a command goes.
struct Question {
  unsigned slot = 0;
  std::string command;
};

/// Why there is no reply.
struct NoReply {
  StoreError::Code code = StoreError::Code::unavailable;
  std::string why;
  bool is_full = false;  ///< The server has no room for anything new.
};
using QuestionResult = std::expected<Reply, NoReply>;

class RetryingClient {
 public:
  RetryingClient(Loop& loop, Servers& servers) : loop_(loop), servers_(servers) {}

  Loop& loop() noexcept { return loop_; }
  Servers& servers() noexcept { return servers_; }

  /// A command that may be repeated without doing more: it is, while the server cannot answer or
  /// its reply was lost, for limits::store_repeat_max. What it answers is no error.
  /// `was_in_doubt`: set where it may have been done before it was asked the last time.
  Task<QuestionResult> ask(Question question, bool* was_in_doubt = nullptr);
  /// One that does more when it is done twice: once it may have been done, it is told as in doubt.
  Task<QuestionResult> ask_once(Question question);
  /// All of them at once; each as above.
  Task<std::vector<QuestionResult>> ask_all(std::vector<Question> questions);

  /// A moment later, for what is repeated.
  Task<void> pause();

 private:
  Task<QuestionResult> ask_until(Question question, bool may_repeat, bool* was_in_doubt);
  Task<void> ask_into(Question question, QuestionResult& into, struct Gathering& gathering);

  Loop& loop_;
  Servers& servers_;
};

/// Makes the scripts known to a server.
Task<std::optional<std::string>> load_scripts(Connection& connection);

}  // namespace idem::redis
