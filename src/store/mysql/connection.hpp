#pragma once

#include "loop/watched_socket.hpp"
#include "store/mysql/rounds.hpp"
#include "store/mysql/url.hpp"

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct st_mysql;
struct st_mysql_res;

/// A connection through the non-blocking interface of MariaDB's client library, for one coroutine
/// at a time.
namespace idem::mysql {

/// The rows of one statement, as texts.
class Rows {
 public:
  explicit Rows(st_mysql_res* result);

  std::size_t size() const noexcept { return rows_.size(); }
  bool is_null(std::size_t row, std::size_t column) const noexcept;
  /// Empty where it is null. Valid as long as this lives.
  std::string_view cell(std::size_t row, std::size_t column) const noexcept;

 private:
  struct Free {
    void operator()(st_mysql_res* result) const noexcept;
  };
  std::unique_ptr<st_mysql_res, Free> result_;
  std::size_t columns_ = 0;
  std::vector<char**> rows_;
  std::vector<unsigned long> lengths_;
};

/// Why statements have no result.
struct Failure {
  unsigned code = 0;  ///< The server's; 0: the connection is lost.
  std::string message{};
  bool in_doubt = false;     ///< It was lost after the statements were sent.
  std::size_t executed = 0;  ///< Statements before the one that failed.

  bool is_lost() const noexcept { return code == 0; }
};

/// Of a server that is too late.
inline constexpr const char* no_answer =
    "no answer in time: the server may be stopped, cut off by the network, or wait for its disk or "
    "a lock (SHOW FULL PROCESSLIST says for what)";

/// For people, on one line, with what to do.
std::string failure_text(const Failure& failure);

/// The rows of each statement that has some, in order.
using Results = std::vector<Rows>;
using QueryResult = std::expected<Results, Failure>;

class Connection;
/// A COMMIT that the server answered with an error: nobody knows how far it came. Closes the
/// connection.
Failure commit_failed(Connection& connection, const Failure& failure);

class Connection final : Timed {
 public:
  Connection(Loop& loop, const Url& url);
  ~Connection() override;

  bool is_open() const noexcept { return connection_ != nullptr; }

  /// Connects to one of the URL's hosts, and sets the session's variables. The error is for people
  /// and holds no password. A lookup of a host's name blocks the loop: the library has no other
  /// way. Addresses of that name that are silent are passed over (see Rounds).
  Task<std::expected<void, std::string>> open(const Host& host, Millis patience);

  /// Statements with `;` between them; they are executed up to the first that fails.
  Task<QueryResult> run(std::string statements, Millis patience);

  void close() noexcept;

  /// HOST:PORT/DATABASE of an open connection.
  const std::string& place() const noexcept { return place_; }
  /// The moment of its last answer.
  MonotonicTime used() const noexcept { return used_; }

 private:
  void tick(MonotonicTime now) override;
  /// Waits for what the library waits for; returns what it is to be called with.
  Task<int> ready(int wanted);
  Task<int> ready_until(int wanted, MonotonicTime until);
  void watch_socket();
  void unwatch_socket() noexcept;
  /// A new connection, not connected yet. False: out of memory.
  bool begin();
  Task<bool> connect(const Host& host, Rounds& rounds);
  Task<std::optional<Failure>> send(const std::string& statements);
  /// The rows of the statement whose turn it is, if it has some.
  Task<std::optional<Failure>> take_rows(Results& into);
  /// 0: there is one more statement, -1: there is none, other: it failed.
  Task<int> next_statement();
  Failure failure_now(bool was_sent);

  Url url_;
  st_mysql* connection_ = nullptr;
  std::optional<WatchedSocket> watched_;
  int socket_ = -1;
  MonotonicTime deadline_ = MonotonicTime::max();
  MonotonicTime used_{};
  bool waiting_ = false;
  bool is_busy_ = false;  ///< Statements were sent, and their answer was not read to its end.
  std::string place_;
};

}  // namespace idem::mysql
