#include "store/redis/connection.hpp"

#include "loop/asio.hpp"

#include <idem/assert.hpp>

#include <boost/asio/post.hpp>

namespace idem::redis {

using boost::system::error_code;

/// Lives as long as a read or write of the connection is under way.
struct Connection::Session {
  explicit Session(std::shared_ptr<Stream> made, Connection& of)
      : stream(std::move(made)), owner(&of) {}

  std::shared_ptr<Stream> stream;
  Connection* owner;  ///< Null: it was closed.
  std::string to_send;
  std::string sending;
  bool is_sending = false;
  bool is_flush_due = false;
  std::string received;
  std::size_t used = 0;  ///< Of `received`, from its front.
  std::deque<Waiting> waiting;
};

namespace {

constexpr std::size_t read_bytes = 64UL * 1024;

constexpr const char* no_answer =
    "no answer in time: the server took the connection, and may be paused (CLIENT PAUSE, which "
    "ends with its time), stopped, busy with a slow command (SLOWLOG GET) or waiting for its disk";

std::optional<std::string> why_not(const CommandResult& answer) {
  if (!answer) return answer.error().why;
  return answer->kind == Reply::Kind::error ? std::optional(error_text(*answer)) : std::nullopt;
}

}  // namespace

Connection::Connection(Loop& loop, Address to, Millis patience)
    : Timed(loop), to_(std::move(to)), patience_(patience) {}

Connection::~Connection() {
  if (session_) session_->owner = nullptr;
}

Task<std::expected<void, std::string>> Connection::open(TlsContext context, Login login,
                                                        int database, Millis patience) {
  close("made anew");
  auto connecting = connect(loop_, to_, std::move(context), patience);
  auto stream = co_await std::move(connecting);
  if (!stream) co_return std::unexpected(std::move(stream.error()));
  session_ = std::make_shared<Session>(std::move(*stream), *this);
  read(session_);
  std::string commands;
  if (!login.password.empty()) {
    const bool is_named = !login.user.empty();
    CommandWriter auth(commands, is_named ? 3 : 2);
    auth.add("AUTH");
    if (is_named) auth.add(login.user);
    auth.add(login.password);
  }
  if (!login.password.empty()) {
    Task<CommandResult> entering = ask(std::move(commands));
    const CommandResult entered = co_await std::move(entering);
    if (auto why = why_not(entered)) {
      close(*why);
      co_return std::unexpected(std::move(*why));
    }
  }
  // 0 is the default, and a sentinel does not know SELECT.
  if (database != 0) {
    Task<CommandResult> selecting = ask(command({"SELECT", std::to_string(database)}));
    const CommandResult selected = co_await std::move(selecting);
    if (auto why = why_not(selected)) {
      close(*why);
      co_return std::unexpected(std::move(*why));
    }
  }
  // A sentinel may answer with an error: every answer will do.
  Task<CommandResult> asking = ask(command({"TIME"}));
  const CommandResult time = co_await std::move(asking);
  if (!time) co_return std::unexpected(time.error().why);
  if (time->is_error("NOAUTH") || time->is_error("NOPERM")) {
    std::string why = error_text(*time);
    close(why);
    co_return std::unexpected(std::move(why));
  }
  if (time->items.size() == 2) {
    const auto seconds = std::strtoll(time->at(0).text.c_str(), nullptr, 10);
    const auto micros = std::strtoll(time->at(1).text.c_str(), nullptr, 10);
    clock = ServerClock();
    clock.observe(StoreTime(Millis(seconds * 1000 + micros / 1000)), MonotonicClock::now());
  }
  co_return std::expected<void, std::string>();
}

Task<CommandResult> Connection::ask(std::string command) {
  Task<CommandResult> asking = ask_last(std::move(command), 1);
  co_return co_await std::move(asking);
}

Task<CommandResult> Connection::ask_last(std::string commands, std::size_t count) {
  if (!session_) co_return std::unexpected(Lost{"there is no connection", false});
  const auto start = [&](Resumption<CommandResult> done) {
    send(commands, count, std::move(done));
  };
  auto waiting = suspend<CommandResult>(start);
  co_return co_await waiting;
}

void Connection::send(std::string_view commands, std::size_t count,
                      Resumption<CommandResult> done) {
  Session& session = *session_;
  session.to_send.append(commands);
  const MonotonicTime now = MonotonicClock::now();
  for (std::size_t i = 1; i < count; ++i) session.waiting.push_back({std::nullopt, now});
  session.waiting.push_back({std::move(done), now});
  flush();
}

std::size_t Connection::unsent_bytes() const noexcept {
  return session_ ? session_->to_send.size() : 0;
}

void Connection::flush() {
  if (session_->is_sending || session_->is_flush_due) return;
  session_->is_flush_due = true;
  // Posted behind all ready handlers: their commands leave with it.
  asio::post(loop_.context(), [session = session_] {
    session->is_flush_due = false;
    if (session->owner != nullptr && !session->is_sending) write(session);
  });
}

void Connection::write(std::shared_ptr<Session> session) {
  if (session->to_send.empty()) return;
  session->is_sending = true;
  session->sending.clear();
  session->sending.swap(session->to_send);
  Stream& stream = *session->stream;
  stream.write_all(session->sending, [session](const error_code& error, std::size_t) {
    session->is_sending = false;
    if (session->owner == nullptr) return;
    if (error) return session->owner->close(error.message());
    write(session);
  });
}

void Connection::read(std::shared_ptr<Session> session) {
  Session& of = *session;
  if (of.used == of.received.size()) {
    of.received.clear();
    of.used = 0;
  }
  const std::size_t before = of.received.size();
  of.received.resize(before + read_bytes);
  const std::span<char> into(of.received.data() + before, read_bytes);
  of.stream->read_some(into, [session, before](const error_code& error, std::size_t bytes) {
    session->received.resize(before + (error ? 0 : bytes));
    if (session->owner == nullptr) return;
    if (error) return session->owner->close(error.message());
    take_replies(*session);
    if (session->owner != nullptr) read(session);
  });
}

void Connection::take_replies(Session& session) {
  for (;;) {
    std::string_view rest = std::string_view(session.received).substr(session.used);
    const std::size_t before = rest.size();
    auto reply = take_reply(rest);
    if (!reply) return session.owner->close(std::string(reply.error()));
    if (!*reply) break;
    session.used += before - rest.size();
    if (session.waiting.empty()) return session.owner->close("a reply without a command");
    Waiting waiting = std::move(session.waiting.front());
    session.waiting.pop_front();
    // The resumed caller may ask, or close.
    if (waiting.done) (*waiting.done)(CommandResult(std::move(**reply)));
    if (session.owner == nullptr) return;
  }
  if (session.used > read_bytes) {
    session.received.erase(0, session.used);
    session.used = 0;
  }
}

void Connection::close(const std::string& why) {
  if (!session_) return;
  const std::shared_ptr<Session> session = std::exchange(session_, nullptr);
  session->owner = nullptr;
  session->stream->close();
  // Posted: the caller may be in a step of one of the waiting ones.
  loop_.post([session, why] {
    while (!session->waiting.empty()) {
      Waiting waiting = std::move(session->waiting.front());
      session->waiting.pop_front();
      if (waiting.done) (*waiting.done)(CommandResult(std::unexpected(Lost{why, true})));
    }
  });
}

void Connection::tick(MonotonicTime now) {
  if (!session_ || session_->waiting.empty()) return;
  if (now - session_->waiting.front().since >= patience_) close(no_answer);
}

}  // namespace idem::redis
