#pragma once

#include "loop/loop.hpp"
#include "store/postgres/values.hpp"

#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pg_conn;
struct pg_result;

/// The door by which libpq enters. One connection, used by one coroutine at a time.
namespace idem::postgres {

/// The rows of an answer, in binary form.
class Rows {
 public:
  explicit Rows(pg_result* result) : result_(result) {}

  int size() const noexcept;
  int columns() const noexcept;
  /// A column's type, by its number in pg_type.
  std::uint32_t type(int column) const noexcept;
  /// What was done, as the server calls it: COMMIT, INSERT 0 1.
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

/// Why a statement has no answer.
struct Failure {
  /// The server's five letters; empty: the connection is gone.
  std::string sqlstate;
  std::string message;
  /// The connection is gone and the statement had been sent: it may have been done.
  bool in_doubt = false;
  std::string detail{};
};
using QueryResult = std::expected<Rows, Failure>;

/// For people, on one line.
std::string failure_text(const Failure& failure);

class Connection final : Timed {
 public:
  /// `uri`: libpq's, with all that it can say.
  Connection(Loop& loop, std::string uri);
  ~Connection() override;

  bool is_open() const noexcept { return connection_ != nullptr; }
  /// The number of the server's process, as it was told when this was opened; a pooler invents one.
  int backend() const noexcept;

  /// Connects to the first of the URI's servers that takes writes. The error is for people and
  /// holds no password. Looking up a name blocks the loop: libpq has no other way.
  Task<std::expected<void, std::string>> open(Millis patience);

  /// One statement, in a transaction of its own unless one was begun. Where `patience` ends first,
  /// or the answer is not what the protocol allows, the connection is closed.
  Task<QueryResult> ask(std::string_view sql, const Params& params, Millis patience);

  /// The same for a text that is asked again and again: from its second time on this connection it
  /// is prepared. Not within a transaction that was begun: where a pooler's next server does not
  /// know it, it is asked a second time.
  Task<QueryResult> ask_often(std::string_view sql, const Params& params, Millis patience);

  /// Statements without parameters, one after the other, and what the last of them answers, in text
  /// form. They are one transaction unless they say otherwise.
  Task<QueryResult> run(std::string_view script, Millis patience);

  void close() noexcept;

  /// Of an open connection: HOST:PORT/DATABASE, with the host of the URI that answered.
  std::string place() const;

 private:
  using Descriptor = asio::posix::basic_stream_descriptor<Executor>;
  enum class Until : std::uint8_t { readable, writable };

  void tick(MonotonicTime now) override;
  /// False: the deadline came first.
  Task<bool> ready(Until what);
  void watch_socket();
  void unwatch_socket() noexcept;
  /// Sends what was queued and reads until the server is ready again.
  Task<QueryResult> answer();
  enum class Known : std::uint8_t { asked, prepared, not_to_be };
  /// The statement's name on every server: the same for the same text only.
  static std::string name_for(std::string_view sql);
  Task<bool> prepare(const std::string& name, std::string_view sql, const Params& params);
  /// Closes; for what was sent.
  Failure lost(bool was_sent);

  std::string uri_;
  std::map<std::string, Known, std::less<>> known_;
  pg_conn* connection_ = nullptr;
  std::optional<Descriptor> descriptor_;
  MonotonicTime deadline_ = MonotonicTime::max();
  bool waiting_ = false;
};

}  // namespace idem::postgres
