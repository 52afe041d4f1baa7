#pragma once

#include "store/redis/resp.hpp"
#include "store/redis/server_clock.hpp"
#include "store/redis/stream.hpp"

#include <deque>

/// One connection; commands follow each other without waiting for replies.
namespace idem::redis {

/// Why a command has no reply: the connection was lost.
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

  /// Connects and logs in; closes the connection before. The error is for people.
  Task<std::expected<void, std::string>> open(TlsContext context, Login login, int database,
                                              Millis patience);

  /// Sends a command; the reply may be an error. The commands of one turn of the loop leave
  /// together. Without a reply within the patience the connection closes, and all commands that
  /// wait for a reply fail.
  Task<CommandResult> ask(std::string command);
  /// Sends several commands together. Returns the reply to the last of them.
  Task<CommandResult> ask_last(std::string commands, std::size_t count);

  void close(const std::string& why);
  /// Bytes that wait to be sent.
  std::size_t unsent_bytes() const noexcept;

  ServerClock clock;

 private:
  struct Session;
  struct Waiting {
    std::optional<Resumption<CommandResult>> done;  ///< None: the reply is dropped.
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
