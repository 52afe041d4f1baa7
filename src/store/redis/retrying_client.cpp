#include "store/redis/retrying_client.hpp"

#include "store/redis/scripts.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::redis {
namespace {

/// Errors that say "not now": nothing was done, and the next moment may be better.
bool is_passing(const Reply& error) {
  constexpr std::string_view codes[] = {"LOADING",    "TRYAGAIN", "CLUSTERDOWN",
                                        "MASTERDOWN", "READONLY", "BUSY",
                                        "MOVED",      "ASK",      "UNBLOCKED"};
  return std::ranges::any_of(codes, [&](std::string_view code) { return error.is_error(code); });
}

/// The server itself cannot accept the command: nothing was done.
bool is_of_the_server(const Reply& error) {
  constexpr std::string_view codes[] = {"OOM",    "MISCONF", "NOREPLICAS",
                                        "NOAUTH", "NOPERM",  "WRONGPASS"};
  return std::ranges::any_of(codes, [&](std::string_view code) { return error.is_error(code); });
}

}  // namespace

Task<std::optional<std::string>> load_scripts(Connection& connection) {
  Task<CommandResult> loading = connection.ask_last(scripts().load(), Scripts::count);
  const CommandResult loaded = co_await std::move(loading);
  if (!loaded) co_return loaded.error().why;
  if (loaded->kind == Reply::Kind::error) co_return error_text(*loaded);
  co_return std::nullopt;
}

Task<void> RetryingClient::pause() {
  Task<void> sleeping = loop_.sleep(limits::store_repeat_interval);
  co_await std::move(sleeping);
}

Task<QuestionResult> RetryingClient::ask(Question question, bool* was_in_doubt) {
  Task<QuestionResult> asking = ask_until(std::move(question), true, was_in_doubt);
  co_return co_await std::move(asking);
}

Task<QuestionResult> RetryingClient::ask_once(Question question) {
  Task<QuestionResult> asking = ask_until(std::move(question), false, nullptr);
  co_return co_await std::move(asking);
}

Task<QuestionResult> RetryingClient::ask_until(Question question, bool may_repeat,
                                               bool* was_in_doubt) {
  if (servers_.open_at(question.slot) == nullptr) {
    Task<Connection*> reaching = servers_.of(question.slot);
    Connection* const reached = co_await std::move(reaching);
    if (reached == nullptr) {
      NoReply none;
      none.why = "the store cannot be reached: " + servers_.why();
      co_return std::unexpected(std::move(none));
    }
  }
  // Time counts from the first try on, not from the connecting.
  const MonotonicTime until = MonotonicClock::now() + limits::store_repeat_max;
  bool in_doubt = false;
  for (;;) {
    Task<CommandResult> asking = servers_.ask(question.slot, question.command);
    CommandResult answer = co_await std::move(asking);
    NoReply none;
    bool is_soon_better = false;
    if (!answer) {
      in_doubt |= answer.error().in_doubt;
      if (in_doubt && was_in_doubt != nullptr) *was_in_doubt = true;
      none.why = "the store cannot be reached: " + answer.error().why;
      // A command that was never sent fails at once: callers do not wait for a server that is down.
      is_soon_better = in_doubt && may_repeat;
    } else if (answer->kind != Reply::Kind::error) {
      co_return std::move(*answer);
    } else if (answer->is_error("NOSCRIPT")) {
      Task<Connection*> finding = servers_.of(question.slot);
      Connection* const connection = co_await std::move(finding);
      if (connection != nullptr) {
        auto loading = load_scripts(*connection);
        const auto unloaded = co_await std::move(loading);
        if (!unloaded && MonotonicClock::now() < until) continue;
      }
      none.why = error_text(*answer);
      is_soon_better = true;
    } else {
      none.why = "the store answers: " + error_text(*answer);
      none.is_full = answer->is_error("OOM");
      is_soon_better = is_passing(*answer);
      // Other errors come from a script that may have done a part.
      if (!is_soon_better && !is_of_the_server(*answer)) none.code = StoreError::Code::in_doubt;
    }
    if (in_doubt) none.code = StoreError::Code::in_doubt;
    const bool is_over = servers_.is_closed() || MonotonicClock::now() >= until;
    if (!is_soon_better || is_over) co_return std::unexpected(none);
    Task<void> pausing = pause();
    co_await std::move(pausing);
  }
}

Task<void> RetryingClient::ask_into(Question question, QuestionResult& into, Gathering& gathering) {
  Task<QuestionResult> asking = ask(std::move(question));
  into = co_await std::move(asking);
  gathering.one_done(loop_);
}

Task<std::vector<QuestionResult>> RetryingClient::ask_all(std::vector<Question> questions) {
  std::vector<QuestionResult> replies(questions.size());
  Gathering gathering{questions.size()};
  for (std::size_t i = 0; i < questions.size(); ++i) {
    loop_.spawn(ask_into(std::move(questions[i]), replies[i], gathering));
  }
  Task<void> waiting = gathering.all();
  co_await std::move(waiting);
  co_return replies;
}

}  // namespace idem::redis
