#include "store/mysql/session.hpp"

#include "store/mysql/failures.hpp"
#include "store/mysql/service_sql.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <fmt/format.h>
#include <mysql.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

namespace idem::mysql {
namespace {

// ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT, ER_CHECKREAD of MariaDB, ER_LOCK_NOWAIT of MySQL.
constexpr std::array<unsigned, 4> contentions{1213, 1205, 1020, 3572};

std::string in_backticks(std::string_view name) {
  std::string quoted("`");
  for (const char c : name) {
    if (c == '`') quoted += '`';
    quoted += c;
  }
  return quoted += '`';
}

}  // namespace

void StatementResult::Free::operator()(st_mysql_res* result) const noexcept {
  mysql_free_result(result);
}

std::string failure_text(const SessionFailure& failure) {
  std::string text =
      failure.is_lost() ? failure.message : fmt::format("{} ({})", failure.message, failure.code);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool is_contention(unsigned code) noexcept {
  return std::ranges::find(contentions, code) != contentions.end();
}

void Session::close() noexcept {
  if (connection_ == nullptr) return;
  // mysql_close() says good-bye in a blocking way: not to a server that takes nothing.
  const auto socket = mysql_get_socket(connection_);
  if (socket != -1) ::shutdown(socket, SHUT_RDWR);
  mysql_close(std::exchange(connection_, nullptr));
}

int Session::wait(int wanted, MonotonicTime until) const noexcept {
  const auto left = until - MonotonicClock::now();
  if (left <= Millis(0)) return 0;
  pollfd watched{static_cast<int>(mysql_get_socket(connection_)), 0, 0};
  if ((wanted & MYSQL_WAIT_READ) != 0) watched.events |= POLLIN;
  if ((wanted & MYSQL_WAIT_WRITE) != 0) watched.events |= POLLOUT;
  if ((wanted & MYSQL_WAIT_EXCEPT) != 0) watched.events |= POLLPRI;
  const int ready =
      ::poll(&watched, 1, static_cast<int>(std::min(left, Millis(3'600'000)).count()));
  if (ready < 0 && errno == EINTR) return wait(wanted, until);
  if (ready <= 0) return 0;
  int event = 0;
  if ((watched.revents & (POLLIN | POLLHUP | POLLERR)) != 0) event |= MYSQL_WAIT_READ;
  if ((watched.revents & POLLOUT) != 0) event |= MYSQL_WAIT_WRITE;
  if ((watched.revents & POLLPRI) != 0) event |= MYSQL_WAIT_EXCEPT;
  return (event & wanted) != 0 ? event & wanted : wanted;
}

bool Session::connect(const Host& host, Rounds& rounds) {
  MYSQL* connected = nullptr;
  int status =
      mysql_real_connect_start(&connected, connection_, host.name.c_str(), url_.user.c_str(),
                               url_.password.c_str(), url_.database.c_str(), host.port, nullptr,
                               CLIENT_MULTI_STATEMENTS | CLIENT_MULTI_RESULTS | CLIENT_FOUND_ROWS);
  while (status != 0) {
    const bool is_silent = is_connecting(static_cast<int>(mysql_get_socket(connection_)));
    if (!is_silent) rounds.met_server();
    int event = wait(status, is_silent ? std::min(rounds.end_of_try(), deadline_) : deadline_);
    if (event == 0 && is_silent && MonotonicClock::now() < deadline_) {
      rounds.cut_try();
      event = MYSQL_WAIT_TIMEOUT;
    }
    if (event == 0) return false;
    status = mysql_real_connect_cont(&connected, connection_, event);
  }
  return connected != nullptr;
}

std::expected<void, std::string> Session::open(const StoreId& store_id, const ServerInUse& in_use) {
  const ServerInUse::Now now = in_use.now();
  if (now.is_left) return std::unexpected("no server that takes writes is known yet");
  const Host& host = url_.hosts.at(now.host);
  auto opened = open_at(host);
  if (opened) opened = check(store_id, now.known);
  if (opened) {
    in_use_ = &in_use;
    turn_ = now.turn;
    return {};
  }
  close();
  return std::unexpected(fmt::format("{}: {}", place_of(url_, host), opened.error()));
}

std::expected<void, std::string> Session::open_at(const Host& host) {
  close();
  deadline_ = MonotonicClock::now() + Millis(limits::store_reply_max);
  database_ = in_backticks(url_.database);
  for (Rounds rounds;;) {
    if (!begin()) return std::unexpected("out of memory");
    if (connect(host, rounds)) return {};
    const std::string why = failure_text(failure_now());
    if (!rounds.begin_next() || MonotonicClock::now() >= deadline_) return std::unexpected(why);
  }
}

bool Session::begin() {
  close();
  connection_ = mysql_init(nullptr);
  if (connection_ == nullptr) return false;
  const unsigned int off = 0;
  const std::size_t packet_max = 1UL << 30;
  const my_bool on = 1;
  mysql_options(connection_, MYSQL_OPT_NONBLOCK, nullptr);
  mysql_options(connection_, MYSQL_OPT_LOCAL_INFILE, &off);
  mysql_options(connection_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
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
  return true;
}

std::expected<void, std::string> Session::check(const StoreId& store_id,
                                                const std::optional<KnownAttempt>& known) {
  const std::string known_id = known ? to_hex(known->id.bytes) : std::string();
  auto answers =
      ask(fmt::format("{};SELECT @@GLOBAL.read_only, @@GLOBAL.innodb_flush_log_at_trx_commit, "
                      "(SELECT LOWER(HEX(store_id)) FROM idem_identity WHERE one = 1), "
                      "@@max_allowed_packet, GREATEST("
                      "COALESCE((SELECT fence FROM idem_slots WHERE id = x'{}'), 0), "
                      "COALESCE((SELECT highest FROM idem_fence WHERE one = 1), 0))",
                      settings_sql(database_, false), known_id),
          limits::store_reply_max);
  if (!answers) return std::unexpected(failure_text(answers.error()));
  const SqlRows rows = answers->back().rows ? to_sql_rows(answers->back().rows.get()) : SqlRows();
  if (rows.size() != 1 || rows.front().size() != 5) return std::unexpected("it is no store");
  if (!is_off(rows.front()[0])) return std::unexpected("it is read-only");
  if (rows.front()[1] != SqlValue(std::int64_t{1})) {
    return std::unexpected("it may forget its last commits: innodb_flush_log_at_trx_commit");
  }
  const auto* const id = std::get_if<std::string>(&rows.front()[2]);
  if (id == nullptr || *id != to_hex(store_id)) return std::unexpected("another store is there");
  const auto* const packet = std::get_if<std::int64_t>(&rows.front()[3]);
  if (packet == nullptr) return std::unexpected("its max_allowed_packet is unknown");
  packet_max_ = static_cast<std::size_t>(*packet);
  const auto* const fence = std::get_if<std::int64_t>(&rows.front()[4]);
  if (known && (fence == nullptr || static_cast<Fence>(*fence) < known->fence)) {
    return std::unexpected(why_lost(*known));
  }
  return {};
}

bool Session::is_still_there() const noexcept {
  if (connection_ == nullptr) return false;
  pollfd watched{static_cast<int>(mysql_get_socket(connection_)), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 0;
}

bool Session::is_in_transaction() const noexcept {
  return connection_ != nullptr && (connection_->server_status & SERVER_STATUS_IN_TRANS) != 0;
}

SessionFailure Session::failure_now() {
  SessionFailure failure;
  failure.code = mysql_errno(connection_);
  failure.sqlstate = mysql_sqlstate(connection_);
  failure.message = mysql_error(connection_);
  if (MonotonicClock::now() >= deadline_) failure = {0, {}, no_answer, {}};
  if (!ends_session(failure.code)) return failure;
  failure.code = 0;
  failure.sqlstate.clear();
  if (failure.message.empty()) failure.message = "the connection was lost";
  close();
  return failure;
}

/// True: it is there, and its rows are to be taken. `status`: what the library says, 0 or -1
/// (none).
bool Session::next_statement(int& status) {
  if (!mysql_more_results(connection_)) {
    status = -1;
    return false;
  }
  int waiting = mysql_next_result_start(&status, connection_);
  while (waiting != 0) {
    const int event = wait(waiting, deadline_);
    if (event == 0) {
      status = 1;
      return false;
    }
    waiting = mysql_next_result_cont(&status, connection_, event);
  }
  return status == 0;
}

std::expected<std::vector<StatementResult>, SessionFailure> Session::ask(
    std::string_view statements, Millis patience) {
  if (connection_ == nullptr) {
    return std::unexpected(SessionFailure{0, {}, "the connection was lost", {}});
  }
  std::vector<StatementResult> answers;
  const auto failed = [&] {
    SessionFailure failure = failure_now();
    failure.before = std::move(answers);
    return std::unexpected(std::move(failure));
  };
  deadline_ = MonotonicClock::now() + patience;
  int is_wrong = 0;
  int waiting =
      mysql_real_query_start(&is_wrong, connection_, statements.data(), statements.size());
  while (waiting != 0) {
    const int event = wait(waiting, deadline_);
    if (event == 0) return failed();
    waiting = mysql_real_query_cont(&is_wrong, connection_, event);
  }
  if (is_wrong != 0) return failed();
  for (;;) {
    StatementResult& answer = answers.emplace_back();
    if (mysql_field_count(connection_) != 0) {
      MYSQL_RES* rows = nullptr;
      waiting = mysql_store_result_start(&rows, connection_);
      while (waiting != 0) {
        const int event = wait(waiting, deadline_);
        if (event == 0) return failed();
        waiting = mysql_store_result_cont(&rows, connection_, event);
      }
      if (rows == nullptr) return failed();
      answer.rows.reset(rows);
    } else {
      answer.matched = mysql_affected_rows(connection_);
    }
    int status = 0;
    if (next_statement(status)) continue;
    if (status > 0) return failed();
    return answers;
  }
}

bool is_off(const SqlValue& value) {
  return value == SqlValue(std::int64_t{0}) || value == SqlValue(std::string("OFF"));
}

std::string settings_sql(std::string_view database, bool in_transaction) {
  return fmt::format(
      "SET NAMES utf8mb4;"
      "SET SESSION sql_mode = "
      "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',"
      " time_zone = '+00:00', innodb_lock_wait_timeout = {}, lock_wait_timeout = {}, autocommit = "
      "{},"
      " completion_type = 0, sql_safe_updates = 0, sql_select_limit = DEFAULT, wait_timeout = {};"
      "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;USE {}",
      std::chrono::seconds(limits::transaction_lock_max).count(),
      std::chrono::seconds(limits::transaction_lock_max).count(), in_transaction ? 0 : 1,
      std::chrono::seconds(limits::transaction_idle_max).count(), database);
}

}  // namespace idem::mysql
