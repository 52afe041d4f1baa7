#pragma once

#include "loop/gathering.hpp"
#include "store/redis/rows.hpp"
#include "store/redis/servers.hpp"

#include <vector>

/// Sends commands to a store's servers, and handles the errors of the servers themselves: missing
/// scripts, and moments in which they cannot answer.
namespace idem::redis {

/// A command, and the slot that it goes to.
struct Question {
  unsigned slot = 0;
  std::string command;
};

/// Why there is no reply.
struct NoReply {
  StoreError::Code code = StoreError::Code::unavailable;
  std::string why;
  bool is_full = false;  ///< The server has no memory for a new record.
};
using QuestionResult = std::expected<Reply, NoReply>;

inline StoreError to_store_error(const NoReply& none) { return {none.code, none.why}; }

class RetryingClient {
 public:
  RetryingClient(Loop& loop, Servers& servers) : loop_(loop), servers_(servers) {}

  Loop& loop() noexcept { return loop_; }
  Servers& servers() noexcept { return servers_; }

  /// For a command whose repeat does nothing more. Repeats it while the server cannot answer or the
  /// reply was lost, for limits::store_repeat_max. The reply is never an error reply.
  /// `was_in_doubt`: set if an earlier try may have been done.
  Task<QuestionResult> ask(Question question, bool* was_in_doubt = nullptr);
  /// For a command whose repeat does more: once it may have been done, the error is `in_doubt`.
  Task<QuestionResult> ask_once(Question question);
  /// Asks all of them at once, each as ask() does.
  Task<std::vector<QuestionResult>> ask_all(std::vector<Question> questions);

  /// The pause between two tries.
  Task<void> pause();

 private:
  Task<QuestionResult> ask_until(Question question, bool may_repeat, bool* was_in_doubt);
  Task<void> ask_into(Question question, QuestionResult& into, Gathering& gathering);

  Loop& loop_;
  Servers& servers_;
};

/// Loads the scripts into a server. None: done.
Task<std::optional<std::string>> load_scripts(Connection& connection);

}  // namespace idem::redis
