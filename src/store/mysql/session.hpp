#pragma once

#include "core/record/which_store.hpp"
#include "store/mysql/rounds.hpp"
#include "store/mysql/server_in_use.hpp"
#include "store/mysql/url.hpp"

#include <idem/record.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <memory>
#include <string>
#include <vector>

struct st_mysql;
struct st_mysql_res;

/// A connection for the transactions of services: its calls block their thread, and have a
/// deadline.
namespace idem::mysql {

/// The result of one statement.
struct StatementResult {
  struct Free {
    void operator()(st_mysql_res* result) const noexcept;
  };
  std::unique_ptr<st_mysql_res, Free> rows{};  ///< Null: the statement has none.
  std::uint64_t matched = 0;                   ///< Rows that a change met.
};

struct SessionFailure {
  unsigned code = 0;  ///< The server's; 0: the session is lost.
  std::string sqlstate{};
  std::string message{};
  std::vector<StatementResult> before{};  ///< Of the statements before the one that failed.

  bool is_lost() const noexcept { return code == 0; }
};
/// For people, on one line.
std::string failure_text(const SessionFailure& failure);
/// The database ended the transaction, or a wait of it, in favour of another one.
bool is_contention(unsigned code) noexcept;

class Session {
 public:
  using Address = Url;
  using Server = ServerInUse;
  static std::uint64_t turn_of(const ServerInUse& in_use) { return in_use.turn(); }
  static void doubt(ServerInUse& in_use) { in_use.doubt(); }

  explicit Session(const Url& url) : url_(url) {}
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Connects to the server in use, if it has this store with the attempts that were confirmed, and
  /// takes writes. The error is for people, and holds no password.
  std::expected<void, std::string> open(const StoreId& store_id, const ServerInUse& in_use);
  void close() noexcept;

  /// Statements with `;` between them, up to the first that fails.
  std::expected<std::vector<StatementResult>, SessionFailure> ask(std::string_view statements,
                                                                  Millis patience);

  bool is_open() const noexcept { return connection_ != nullptr; }
  /// The server has said nothing since the last answer: it has not ended the session.
  bool is_still_there() const noexcept;
  bool is_in_transaction() const noexcept;
  bool may_be_kept() const noexcept { return is_open() && !is_in_transaction(); }
  /// It leads to the server in use. An open transaction of another one must not commit.
  bool is_current() const { return in_use_ != nullptr && in_use_->turn() == turn_; }
  /// Null: not open.
  st_mysql* native() noexcept { return connection_; }
  /// The database's name in backticks: a service may have chosen another one.
  const std::string& database() const noexcept { return database_; }
  /// The longest text of statements that the server takes.
  std::size_t packet_max() const noexcept { return packet_max_; }

 private:
  std::expected<void, std::string> open_at(const Host& host);
  std::expected<void, std::string> check(const StoreId& store_id,
                                         const std::optional<KnownAttempt>& known);
  /// Blocks until the library can go on; what it is to be called with. 0: not in time.
  int wait(int wanted, MonotonicTime until) const noexcept;
  /// A new connection, not connected yet. False: out of memory.
  bool begin();
  bool connect(const Host& host, Rounds& rounds);
  bool next_statement(int& status);
  SessionFailure failure_now();

  const Url& url_;
  st_mysql* connection_ = nullptr;
  std::string database_;
  std::size_t packet_max_ = 0;
  const ServerInUse* in_use_ = nullptr;
  std::uint64_t turn_ = 0;  ///< Of the server in use, when this was opened.
  MonotonicTime deadline_{};
};

/// Of a value of @@read_only, which newer servers answer as a word.
bool is_off(const SqlValue& value);

/// What each transaction, and each statement of its own, begins with: an earlier handler's settings
/// must not hold in it. `database`: in backticks.
std::string settings_sql(std::string_view database, bool in_transaction);

}  // namespace idem::mysql
