#pragma once

#include "json/value.hpp"
#include "loop/gathering.hpp"
#include "store/dynamodb/credentials.hpp"
#include "store/dynamodb/date_clock.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"
#include "store/dynamodb/item.hpp"
#include "store/dynamodb/url.hpp"

#include <idem/store.hpp>

#include <deque>
#include <functional>
#include <random>
#include <vector>

/// Asks the table's service: signs, repeats what is throttled or lost, and says what a missing
/// answer means.
namespace idem::dynamodb {

/// Why there is no reply.
struct NoReply {
  StoreError::Code code = StoreError::Code::unavailable;
  std::string why;
  std::string type{};  ///< The service's exception; empty: none.
  /// The caller's condition for sending did not hold any more; this try was not sent.
  bool was_kept_back = false;
};

struct Reply {
  json::Value body;
  bool is_refused = false;  ///< A write's condition did not hold. `body` may have the item.
};
using ReplyResult = std::expected<Reply, NoReply>;

inline StoreError to_store_error(const NoReply& none) { return {none.code, none.why}; }

/// An action, and its request.
struct Question {
  std::string action;
  std::string body;
};

class Client {
 public:
  Client(Loop& loop, Url url, CredentialChain::Environment environment);

  Loop& loop() noexcept { return loop_; }
  const std::string& table() const noexcept { return url_.table; }
  const DateClock& clock() const noexcept { return clock_; }

  /// For a question whose repeat does nothing more: a reading, or a write on the condition of a
  /// version that it replaces. Repeats it while the service is busy or the answer was lost, for
  /// limits::store_repeat_max. `was_in_doubt`: set if an earlier try may have been done.
  Task<ReplyResult> ask(Question question, bool* was_in_doubt = nullptr);
  /// For one whose repeat does more: once it may have been done, the error is `in_doubt`.
  Task<ReplyResult> ask_once(Question question);
  /// Asks all of them, a bounded number at once, each as ask() does.
  Task<std::vector<ReplyResult>> ask_all(std::vector<Question> questions);

  /// Asked before each try, when it is about to be sent: calls may wait for their places.
  using MaySend = std::function<bool()>;
  Task<ReplyResult> write(const Update& update, bool* was_in_doubt = nullptr,
                          MaySend may_send = {});
  Task<ReplyResult> erase(const Update& condition, bool* was_in_doubt = nullptr);
  /// A strongly consistent reading. None: there is no such item. `is_ahead`: it waits for no place.
  Task<std::expected<std::optional<Item>, NoReply>> read(Key key, bool is_ahead = false);
  Question reading(const Key& key) const;

  /// The pause between two tries.
  Task<void> pause();
  void close() { transfers_.close(); }
  bool is_closed() const noexcept { return transfers_.is_closed(); }

 private:
  enum class After : std::uint8_t { give_up, repeat };
  struct Judged {
    NoReply none;
    bool is_in_doubt = false;  ///< It may have been done.
    After after = After::give_up;
  };

  struct Terms {
    bool may_repeat = true;
    bool* was_in_doubt = nullptr;
    MaySend may_send{};
    bool is_ahead = false;
  };
  Task<ReplyResult> ask_until(Question question, Terms terms);
  /// Requests under way have a bound; further ones wait in the order of their coming.
  Task<void> take_place();
  void give_place();
  Task<HttpResult> send(const Question& question, NoReply& none);
  Judged judge(const HttpAnswer& answer, const json::Value* body);
  Judged judge(const HttpFailure& failure) const;
  Task<void> ask_into(std::vector<Question>& questions, std::size_t first, std::size_t step,
                      std::vector<ReplyResult>& into, Gathering& gathering);

  Loop& loop_;
  Url url_;
  Transfers transfers_;
  CredentialChain credentials_;
  DateClock clock_;
  std::minstd_rand random_;
  std::size_t places_ = limits::dynamodb_requests_max;
  std::deque<Resumption<bool>> waiting_;
};

/// No answer has shown the service's time yet.
StoreError unknown_time();

}  // namespace idem::dynamodb
