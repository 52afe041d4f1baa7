#pragma once

#include "loop/watched_socket.hpp"
#include "store/postgres/places.hpp"
#include "store/postgres/values.hpp"

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pg_conn;
struct pg_result;

/// A connection through libpq, for one coroutine at a time.
namespace idem::postgres {

/// The rows of a result, in binary form.
class Rows {
 public:
  explicit Rows(pg_result* result) : result_(result) {}

  int size() const noexcept;
  int columns() const noexcept;
  /// A column's type, by its number in pg_type.
  std::uint32_t type(int column) const noexcept;
  /// The server's command tag: COMMIT, INSERT 0 1.
  std::string_view command() const noexcept;
  const pg_result* result() const noexcept { return result_.get(); }
  bool is_null(int row, int column) const noexcept;
  /// Empty where it is null. Valid as long as this lives.
  std::string_view cell(int row, int column) const noexcept;

 private:
  struct Free {
    void operator()(pg_result* result) const noexcept;
  };
  std::unique_ptr<pg_result, Free> result_;
};

/// Why a statement has no result.
struct Failure {
  /// The server's SQLSTATE; empty: the connection is lost.
  std::string sqlstate;
  std::string message;
  /// The connection was lost after the statement was sent: it may have been executed.
  bool in_doubt = false;
  std::string detail{};
};
using QueryResult = std::expected<Rows, Failure>;

/// Of a server that is too late.
inline constexpr const char* no_answer =
    "no answer in time: the server may be stopped, cut off by the network, or wait for its disk or "
    "a lock (pg_stat_activity says for what)";

/// For people, on one line, with what to do.
std::string failure_text(const Failure& failure);

class Connection final : Timed {
 public:
  /// `uri`: any that libpq accepts.
  Connection(Loop& loop, std::string uri);
  ~Connection() override;

  bool is_open() const noexcept { return connection_ != nullptr; }
  /// The server has said nothing since the last answer: it has not ended the session.
  bool is_still_there() const noexcept;
  /// The process id that the server sent when this was opened; a pooler invents one.
  int backend() const noexcept;

  /// Connects to the first of the URI's servers that accepts writes; of several addresses, that
  /// which accepts first is asked first. The error is for people and holds no password.
  Task<std::expected<void, std::string>> open(Millis patience);

  /// One statement, in a transaction of its own unless one is open. Closes the connection when
  /// `patience` ends first, or when the reply breaks the protocol.
  Task<QueryResult> ask(std::string_view sql, const Params& params, Millis patience);

  /// The same for a frequent statement: prepares it at its second use on this connection. Not for
  /// an open transaction: if a pooler's server does not know the name, it sends the text again.
  Task<QueryResult> ask_often(std::string_view sql, const Params& params, Millis patience);

  /// Statements without parameters, one after the other, in one transaction unless they end it;
  /// the result of the last one, in text form.
  Task<QueryResult> run(std::string_view script, Millis patience);

  void close() noexcept;

  /// HOST:PORT/DATABASE of an open connection, with the host that it reached.
  std::string place() const;

 private:
  using Way = WatchedSocket::Way;

  /// Until deadline_. Without a place libpq finds the server alone.
  Task<std::expected<void, std::string>> open_at(std::optional<Place> place);

  void tick(MonotonicTime now) override;
  /// False: the deadline came first.
  Task<bool> ready(Way way);
  void watch_socket();
  void unwatch_socket() noexcept;
  /// Sends the queued statement and reads until the server is ready again.
  Task<QueryResult> answer();
  enum class Known : std::uint8_t { asked, prepared, unpreparable };
  /// The statement's name on every server: one for each text.
  static std::string name_for(std::string_view sql);
  Task<bool> prepare(const std::string& name, std::string_view sql, const Params& params);
  /// Closes the connection; the failure of what was sent.
  Failure lost(bool was_sent);

  std::string uri_;
  std::map<std::string, Known, std::less<>> known_;
  pg_conn* connection_ = nullptr;
  std::optional<WatchedSocket> watched_;
  MonotonicTime deadline_ = MonotonicTime::max();
  bool waiting_ = false;
};

}  // namespace idem::postgres
