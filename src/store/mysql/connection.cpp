#include "store/mysql/connection.hpp"

#include "store/mysql/failures.hpp"

#include <idem/assert.hpp>

#include <mysql.h>
#include <mysqld_error.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace idem::mysql {

namespace {

/// All that a server, or its configuration for an account, could set otherwise. `binary`: a literal
/// and a result are bytes. Locks: a batch must not wait for an application's transaction. A session
/// that has been silent for wait_timeout has a process behind it that is gone or stands still; its
/// end gives up the locks. The store's own connections ask something more often.
constexpr const char* session_sql =
    "SET NAMES binary;"
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',"
    " time_zone = '+00:00', innodb_lock_wait_timeout = 1, lock_wait_timeout = 5, autocommit = 1,"
    " completion_type = 0, sql_safe_updates = 0, sql_select_limit = DEFAULT, wait_timeout = 30;"
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

}  // namespace

void Rows::Free::operator()(st_mysql_res* result) const noexcept { mysql_free_result(result); }

Rows::Rows(st_mysql_res* result) : result_(result), columns_(mysql_num_fields(result)) {
  rows_.reserve(mysql_num_rows(result));
  lengths_.reserve(mysql_num_rows(result) * columns_);
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const unsigned long* const lengths = mysql_fetch_lengths(result);
    rows_.push_back(row);
    lengths_.insert(lengths_.end(), lengths, lengths + columns_);
  }
}

bool Rows::is_null(std::size_t row, std::size_t column) const noexcept {
  return rows_[row][column] == nullptr;
}

std::string_view Rows::cell(std::size_t row, std::size_t column) const noexcept {
  const char* const text = rows_[row][column];
  if (text == nullptr) return {};
  return {text, lengths_[row * columns_ + column]};
}

namespace {

/// What an operator does about a code of MariaDB's or MySQL's whose message does not say it.
std::string_view advice_on(unsigned code) {
  switch (code) {
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_PROCACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
      return "this user lacks the right: GRANT ALL on the database of the store to it";
    case 1969:  // ER_STATEMENT_TIMEOUT of MariaDB
    case 3024:  // ER_QUERY_TIMEOUT of MySQL
      return "a limit of time ended the statement: look at max_statement_time "
             "(max_execution_time of MySQL) of this user and of the server";
    case ER_QUERY_INTERRUPTED:
      return "an operator ended the statement (KILL QUERY)";
    case ER_LOCK_WAIT_TIMEOUT:
      return "another session holds a lock: information_schema.innodb_trx names it";
    case ER_DISK_FULL:
    case ER_RECORD_FILE_FULL:
      return "the server's disk is full: make room there";
    case ER_CON_COUNT_ERROR:
      return "end other sessions, or raise max_connections";
    case ER_NOT_KEYFILE:
    case ER_CRASHED_ON_USAGE:
      return "the server's files are damaged: look at its log before anything else";
    default:
      return {};
  }
}

}  // namespace

std::string failure_text(const Failure& failure) {
  std::string text = failure.is_lost()
                         ? failure.message
                         : failure.message + " (" + std::to_string(failure.code) + ")";
  if (const auto todo = advice_on(failure.code); !todo.empty()) text.append("; ").append(todo);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

Failure commit_failed(Connection& connection, const Failure& failure) {
  if (failure.is_lost()) return failure;
  connection.close();
  return {0, failure_text(failure), true};
}

Connection::Connection(Loop& loop, const Url& url) : Timed(loop), url_(url) {}

Connection::~Connection() { close(); }

void Connection::close() noexcept {
  if (connection_ == nullptr) return;
  unwatch_socket();
  // mysql_close() says good-bye in a blocking way: not to a server that may take nothing.
  const auto socket = mysql_get_socket(connection_);
  if (is_busy_ && socket != -1) ::shutdown(socket, SHUT_RDWR);
  is_busy_ = false;
  mysql_close(std::exchange(connection_, nullptr));
}

void Connection::watch_socket() {
  const auto socket = mysql_get_socket(connection_);
  if (watched_ && socket == socket_) return;
  unwatch_socket();
  socket_ = socket;
  watched_.emplace(loop_, socket);
}

// The socket is the library's to close.
void Connection::unwatch_socket() noexcept {
  watched_.reset();
  socket_ = -1;
}

void Connection::tick(MonotonicTime now) {
  if (waiting_ && now >= deadline_ && watched_) watched_->cancel();
}

Task<int> Connection::ready_until(int wanted, MonotonicTime until) {
  const MonotonicTime all = std::exchange(deadline_, std::min(deadline_, until));
  auto waiting = ready(wanted);
  const int event = co_await std::move(waiting);
  deadline_ = all;
  co_return event;
}

Task<int> Connection::ready(int wanted) {
  if (MonotonicClock::now() >= deadline_ || mysql_get_socket(connection_) == -1) co_return 0;
  watch_socket();
  const bool reads = (wanted & MYSQL_WAIT_READ) != 0;
  const auto way = reads ? WatchedSocket::Way::readable : WatchedSocket::Way::writable;
  const auto start = [&](Resumption<bool> woken) { watched_->wait(way, std::move(woken)); };
  waiting_ = true;
  auto waiting = suspend<bool>(start);
  const bool is_ready = co_await waiting;
  waiting_ = false;
  if (!is_ready || connection_ == nullptr) co_return 0;
  co_return reads ? MYSQL_WAIT_READ : MYSQL_WAIT_WRITE;
}

Failure Connection::failure_now(bool was_sent) {
  const unsigned code = connection_ != nullptr ? mysql_errno(connection_) : 0;
  Failure failure{code, connection_ != nullptr ? mysql_error(connection_) : "it was closed"};
  if (MonotonicClock::now() >= deadline_) failure = {0, no_answer};
  if (!ends_session(failure.code)) return failure;
  failure.code = 0;
  failure.in_doubt = was_sent;
  if (failure.message.empty()) failure.message = "the connection was lost";
  close();
  return failure;
}

Task<bool> Connection::connect(const Host& host, Rounds& rounds) {
  MYSQL* connected = nullptr;
  int status = mysql_real_connect_start(
      &connected, connection_, host.name.c_str(), url_.user.c_str(), url_.password.c_str(),
      url_.database.c_str(), host.port, nullptr, CLIENT_MULTI_STATEMENTS | CLIENT_MULTI_RESULTS);
  while (status != 0) {
    unwatch_socket();  // Each address has a socket of its own, perhaps of the same number.
    const bool is_silent = is_connecting(static_cast<int>(mysql_get_socket(connection_)));
    if (!is_silent) rounds.met_server();
    auto waiting = ready_until(status, is_silent ? rounds.end_of_try() : deadline_);
    int event = co_await std::move(waiting);
    if (event == 0 && is_silent && MonotonicClock::now() < deadline_) {
      rounds.cut_try();
      event = MYSQL_WAIT_TIMEOUT;
    }
    if (event == 0) co_return false;
    status = mysql_real_connect_cont(&connected, connection_, event);
  }
  co_return connected != nullptr;
}

bool Connection::begin() {
  close();
  connection_ = mysql_init(nullptr);
  if (connection_ == nullptr) return false;
  const unsigned int off = 0;
  const std::size_t packet_max = 1UL << 30;
  const my_bool on = 1;
  mysql_options(connection_, MYSQL_OPT_NONBLOCK, nullptr);
  mysql_options(connection_, MYSQL_OPT_LOCAL_INFILE, &off);
  mysql_options(connection_, MYSQL_SET_CHARSET_NAME, "binary");
  mysql_options(connection_, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet_max);
  if (!url_.ca_file.empty()) {
    mysql_options(connection_, MYSQL_OPT_SSL_ENFORCE, &on);
    mysql_options(connection_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
    mysql_options(connection_, MYSQL_OPT_SSL_CA, url_.ca_file.c_str());
  }
  if (!url_.cert_file.empty()) {
    mysql_options(connection_, MYSQL_OPT_SSL_CERT, url_.cert_file.c_str());
    mysql_options(connection_, MYSQL_OPT_SSL_KEY, url_.key_file.c_str());
  }
  is_busy_ = true;
  return true;
}

Task<std::expected<void, std::string>> Connection::open(const Host& host, Millis patience) {
  deadline_ = MonotonicClock::now() + patience;
  place_ = place_of(url_, host);
  for (Rounds rounds;;) {
    if (!begin()) co_return std::unexpected(std::string("out of memory"));
    auto connecting = connect(host, rounds);
    const bool is_connected = co_await std::move(connecting);
    if (is_connected) break;
    const Failure failure = failure_now(false);
    close();
    const bool goes_on = rounds.begin_next() && MonotonicClock::now() < deadline_;
    if (!goes_on) co_return std::unexpected(place_ + ": " + failure_text(failure));
  }
  unwatch_socket();
  auto setting = run(session_sql, patience);
  const QueryResult set = co_await std::move(setting);
  if (set) co_return std::expected<void, std::string>();
  close();
  co_return std::unexpected(place_ + ": " + failure_text(set.error()));
}

Task<std::optional<Failure>> Connection::send(const std::string& statements) {
  int failed = 0;
  int status = mysql_real_query_start(&failed, connection_, statements.data(), statements.size());
  while (status != 0) {
    auto waiting = ready(status);
    const int event = co_await std::move(waiting);
    if (event == 0) co_return failure_now(true);
    status = mysql_real_query_cont(&failed, connection_, event);
  }
  if (failed != 0) co_return failure_now(true);
  co_return std::nullopt;
}

Task<std::optional<Failure>> Connection::take_rows(Results& into) {
  if (mysql_field_count(connection_) == 0) co_return std::nullopt;
  MYSQL_RES* result = nullptr;
  int status = mysql_store_result_start(&result, connection_);
  while (status != 0) {
    auto waiting = ready(status);
    const int event = co_await std::move(waiting);
    if (event == 0) co_return failure_now(true);
    status = mysql_store_result_cont(&result, connection_, event);
  }
  if (result == nullptr) co_return failure_now(true);
  into.emplace_back(result);
  co_return std::nullopt;
}

Task<int> Connection::next_statement() {
  if (!mysql_more_results(connection_)) co_return -1;
  int next = 0;
  int status = mysql_next_result_start(&next, connection_);
  while (status != 0) {
    auto waiting = ready(status);
    const int event = co_await std::move(waiting);
    if (event == 0) co_return 1;
    status = mysql_next_result_cont(&next, connection_, event);
  }
  co_return next;
}

Task<QueryResult> Connection::run(std::string statements, Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  Results results;
  is_busy_ = true;
  auto sending = send(statements);
  std::optional<Failure> failure = co_await std::move(sending);
  int next = 0;
  std::size_t executed = 0;
  while (!failure && next == 0) {
    auto taking = take_rows(results);
    failure = co_await std::move(taking);
    if (failure) break;
    ++executed;
    auto going_on = next_statement();
    next = co_await std::move(going_on);
    if (next > 0) failure = failure_now(true);
  }
  is_busy_ = false;
  used_ = MonotonicClock::now();
  if (!failure) co_return std::move(results);
  failure->executed = executed;
  co_return std::unexpected(std::move(*failure));
}

}  // namespace idem::mysql
