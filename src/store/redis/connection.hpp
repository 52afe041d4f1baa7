#pragma once

#include "store/redis/resp.hpp"
#include "store/redis/server_clock.hpp"
#include "store/redis/stream.hpp"

#include <deque>

/// One connection, on which commands follow each other without waiting for their replies.
namespace idem::redis {

/// Why a command has no reply: the connection is gone.
struct Lost {
  std::string why;
  bool in_doubt = false;  ///< The command may have been done.
};
using CommandResult = std::expected<Reply, Lost>;

class Connection final : Timed {
 public:
  Connection(Loop& loop, Address to, Millis patience);
  ~Connection() override;

  const Address& address() const noexcept { return to_; }
  bool is_open() const noexcept { return session_ != nullptr; }

  /// Connects and logs in, in place of what there was. The error is for people.
  Task<std::expected<void, std::string>> open(TlsContext context, Login login, int database,
                                              Millis patience);

  /// Sends a command; the reply may be an error. All that are asked while the loop is at it leave
  /// together. Where no reply comes within the patience, the connection is closed, and all that
  /// wait for one hear so.
  Task<CommandResult> ask(std::string command);
  /// Several commands, sent together. The reply to the last of them.
  Task<CommandResult> ask_last(std::string commands, std::size_t count);

  void close(const std::string& why);
  /// What waits to be sent.
  std::size_t unsent_bytes() const noexcept;

  ServerClock clock;

 private:
  struct Session;
  struct Waiting {
    std::optional<Resumption<CommandResult>> done;  ///< None: the reply is thrown away.
    MonotonicTime since;
  };

  void tick(MonotonicTime now) override;
  void send(std::string_view commands, std::size_t count, Resumption<CommandResult> done);
  void flush();
  static void write(std::shared_ptr<Session> session);
  static void read(std::shared_ptr<Session> session);
  static void take_replies(Session& session);

  Address to_;
  Millis patience_;
  std::shared_ptr<Session> session_;
};

}  // namespace idem::redis
