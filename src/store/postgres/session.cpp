#include "store/postgres/session.hpp"

#include "store/postgres/libpq.hpp"
#include "store/postgres/server_check.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <libpq-fe.h>
#include <poll.h>

#include <cerrno>

namespace idem::postgres {
namespace {

/// Non-blocking while it lives: a service that uses the connection itself expects the usual mode,
/// which blocks while it sends.
class WithoutWaiting {
 public:
  explicit WithoutWaiting(pg_conn*& connection) : connection_(connection) {
    PQsetnonblocking(connection_, 1);
  }
  ~WithoutWaiting() {
    if (connection_ != nullptr) PQsetnonblocking(connection_, 0);
  }
  WithoutWaiting(const WithoutWaiting&) = delete;
  WithoutWaiting& operator=(const WithoutWaiting&) = delete;

 private:
  pg_conn*& connection_;  // Null once it was closed.
};

bool is_copy(const pg_result* result) noexcept {
  const auto status = PQresultStatus(result);
  return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

}  // namespace

void Session::close() noexcept {
  PQfinish(std::exchange(connection_, nullptr));
  prepared_.clear();
  is_trusted_ = true;
}

bool Session::ready(short events) const noexcept {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - MonotonicClock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{PQsocket(connection_), events, 0};
    const int found = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

Failure Session::lost(bool was_sent) {
  Failure failure{{}, trouble_of(connection_), was_sent};
  if (MonotonicClock::now() >= deadline_) failure.message = no_answer;
  close();
  return failure;
}

std::expected<void, std::string> Session::connect() {
  Places places(uri_);
  if (places.hosts().empty()) return connect_at(nullptr);
  for (std::size_t i = 0; i < places.hosts().size(); ++i) {
    const NamedHost& host = places.hosts()[i];
    places.found(i, look_up(host.name, host.port, deadline_));
  }
  for (Peers peers = places.peers(); !peers.empty(); peers = places.peers()) {
    Peer peer = peers.front();
    if (peers.size() > 1) {
      const auto accepted = connect_within(peers, deadline_);
      if (!accepted) {
        places.none_accepted(accepted.error());
        break;
      }
      peer = accepted->peer;
    }
    const Place place = places.take(peer);
    auto connected = connect_at(&place);
    if (connected) return connected;
    places.failed(connected.error());
  }
  return std::unexpected(places.why_none());
}

std::expected<void, std::string> Session::connect_at(const Place* place) {
  connection_ = begin_connecting(uri_, place);
  auto step =
      PQstatus(connection_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (step == PGRES_POLLING_READING || step == PGRES_POLLING_WRITING) {
    const bool is_ready = ready(step == PGRES_POLLING_READING ? POLLIN : POLLOUT);
    step = is_ready ? PQconnectPoll(connection_) : PGRES_POLLING_FAILED;
  }
  if (step != PGRES_POLLING_OK) return std::unexpected(lost(false).message);
  return {};
}

std::expected<void, std::string> Session::open(const Uuid& store_id, Lineage& lineage) {
  close();
  if (auto unreadable = why_unreadable(uri_)) return std::unexpected(std::move(*unreadable));
  deadline_ = MonotonicClock::now() + limits::store_connect_max;
  if (auto connected = connect(); !connected) return connected;
  const auto refused = [&](std::string why) {
    close();
    return std::unexpected(std::move(why));
  };
  const QueryResult server = ask(server_check_sql, Params(), limits::store_reply_max);
  if (!server) return refused(failure_text(server.error()));
  auto unsafe = why_unsafe(*server, PQbackendPID(connection_));
  if (unsafe) return refused(std::move(*unsafe));
  const auto known = lineage.known_fence();
  const QueryResult which = ask(which_store_sql, Params(), limits::store_reply_max);
  if (!which) return refused(failure_text(which.error()));
  if (auto other = why_not_this_store(*which, store_id)) return refused(std::move(*other));
  const QueryResult history = ask(server_history_sql, Params(), limits::store_reply_max);
  if (!is_open()) return std::unexpected(failure_text(history.error()));
  const ServerHistory its = history_of(history, fence_in(*which));
  if (auto behind = lineage.why_refused(its, known)) return refused(std::move(*behind));
  lineage_ = &lineage;
  timeline_ = its.timeline;
  // A pooler invents process ids, because it moves sessions between servers.
  const QueryResult pid =
      ask("SELECT pg_catalog.pg_backend_pid()", Params(), limits::store_reply_max);
  if (!pid) return refused(failure_text(pid.error()));
  is_direct_ = to_number(pid->cell(0, 0)) == PQbackendPID(connection_);
  return {};
}

Prepared::Name Session::name_of(const Asked& asked) {
  if (!is_direct_ || !is_trusted_) return {};
  return prepared_.name_of(asked.sql, asked.params.types, asked.kept);
}

bool Session::send(const Asked& asked, const Prepared::Name& name) noexcept {
  const Params::Raw& raw = asked.params;
  const int count = static_cast<int>(raw.types.size());
  const int format = static_cast<int>(asked.format);
  const std::string sql(name.is_known ? std::string_view() : asked.sql);
  if (name.text.empty()) {
    return PQsendQueryParams(connection_, sql.c_str(), count, raw.types.data(), raw.values.data(),
                             raw.lengths.data(), raw.formats.data(), format) == 1;
  }
  if (!name.is_known &&
      PQsendPrepare(connection_, name.text.c_str(), sql.c_str(), count, raw.types.data()) != 1) {
    return false;
  }
  return PQsendQueryPrepared(connection_, name.text.c_str(), count, raw.values.data(),
                             raw.lengths.data(), raw.formats.data(), format) == 1;
}

QueryResult Session::ask(const Asked& asked, Millis patience) {
  IDEM_ASSERT(is_open());
  const Prepared::Name name = name_of(asked);
  if (!name.text.empty() && !name.is_known) {
    auto answers = ask_all({&asked, 1}, patience);
    return std::move(answers.back());
  }
  deadline_ = MonotonicClock::now() + patience;
  const WithoutWaiting sending(connection_);
  // Part of it may have left.
  if (!send(asked, name) || !flush()) return std::unexpected(lost(true));
  QueryResult answer = next_reply();
  if (!answer) note_failure(asked, name, answer.error());
  if (answer && asked.kept == Kept::service && name.text.empty() && answer->columns() == 0) {
    prepared_.answered_no_rows(asked.sql, asked.params.types);
  }
  return answer;
}

void Session::note_failure(const Asked& asked, const Prepared::Name& name, const Failure& failure) {
  if (asked.kept != Kept::service || name.text.empty()) return;
  // These errors may come from a change since the statement was analysed.
  const auto is_of = [&](std::string_view state) { return failure.sqlstate.starts_with(state); };
  if (is_of("0A") || is_of("22") || is_of("26") || is_of("42")) prepared_.forget(name);
}

std::vector<QueryResult> Session::ask_all(std::span<const Asked> asked, Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  const WithoutWaiting sending(connection_);
  std::vector<Prepared::Name> names;
  std::vector<QueryResult> answers;
  bool is_sent = PQenterPipelineMode(connection_) == 1;
  for (const Asked& one : asked) {
    is_sent = is_sent && send(one, names.emplace_back(name_of(one)));
  }
  if (!is_sent || PQpipelineSync(connection_) != 1 || !flush()) {
    answers.emplace_back(std::unexpected(lost(true)));
    return answers;
  }
  bool has_failed = false;
  const auto receive_next = [&](bool is_answer) {
    QueryResult received = next_reply();
    const bool is_reported = !has_failed || !is_open();
    has_failed |= !received;
    if (is_reported && (is_answer || !received)) answers.push_back(std::move(received));
  };
  for (std::size_t i = 0; i < asked.size() && is_open(); ++i) {
    const bool is_prepared_now = !names[i].text.empty() && !names[i].is_known;
    if (is_prepared_now) receive_next(false);
    if (is_prepared_now && !has_failed) prepared_.was_prepared(names[i]);
    const bool was_fine = !has_failed;
    if (is_open()) receive_next(true);
    if (was_fine && has_failed) note_failure(asked[i], names[i], answers.back().error());
  }
  if (is_open() && !receive_sync()) answers.emplace_back(std::unexpected(lost(true)));
  return answers;
}

void Session::invalidate_prepared() {
  is_trusted_ = false;
  prepared_.forget_services();
}

std::vector<std::string> Session::trust() {
  is_trusted_ = true;
  return prepared_.take_left_over();
}

QueryResult Session::run(std::string_view script, Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  const WithoutWaiting sending(connection_);
  const std::string statements(script);
  if (PQsendQuery(connection_, statements.c_str()) != 1 || !flush()) {
    return std::unexpected(lost(true));
  }
  return next_reply();
}

bool Session::flush() noexcept {
  for (;;) {
    const int left = PQflush(connection_);
    if (left == 0) return true;
    // A server that does not read may have to be read first.
    if (left < 0 || !ready(POLLIN | POLLOUT) || PQconsumeInput(connection_) == 0) return false;
  }
}

bool Session::is_readable() noexcept {
  while (PQisBusy(connection_) != 0) {
    if (!ready(POLLIN) || PQconsumeInput(connection_) == 0) return false;
  }
  return true;
}

bool Session::receive_sync() noexcept {
  if (!is_readable()) return false;
  const Rows held(PQgetResult(connection_));
  return PQresultStatus(held.result()) == PGRES_PIPELINE_SYNC &&
         PQexitPipelineMode(connection_) == 1;
}

QueryResult Session::next_reply() {
  std::optional<Rows> rows;
  std::optional<Failure> failure;
  for (;;) {
    if (!is_readable()) return std::unexpected(lost(true));
    PGresult* const result = PQgetResult(connection_);
    if (result == nullptr) break;
    Rows held(result);
    if (was_answered(result)) {
      rows = std::move(held);
    } else if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED) {
      failure = Failure{"25P02", "a statement before it failed"};
    } else if (PQresultStatus(result) == PGRES_EMPTY_QUERY) {
      failure = Failure{"42601", "there is no statement"};
    } else if (is_copy(result)) {
      Failure copying = lost(true);
      copying.message = "COPY cannot be run like this";
      return std::unexpected(std::move(copying));
    } else if (auto refused = failure_of(result)) {
      failure = std::move(refused);
    } else {
      return std::unexpected(lost(true));
    }
  }
  // As in Connection::answer(): such an error may have come behind a commit.
  const bool is_unknown = failure && failure->sqlstate == "40003";
  if (is_unknown || PQstatus(connection_) != CONNECTION_OK) {
    Failure gone = lost(true);
    if (failure) gone.message = std::move(failure->message);
    return std::unexpected(std::move(gone));
  }
  if (failure) return std::unexpected(std::move(*failure));
  if (!rows) return std::unexpected(lost(true));
  return std::move(*rows);
}

bool Session::is_still_there() const noexcept {
  if (!is_idle()) return false;
  // Bytes to read without a question are the server's goodbye.
  pollfd looked{PQsocket(connection_), POLLIN, 0};
  return ::poll(&looked, 1, 0) == 0;
}

bool Session::is_idle() const noexcept {
  return is_open() && PQtransactionStatus(connection_) == PQTRANS_IDLE &&
         PQpipelineStatus(connection_) == PQ_PIPELINE_OFF;
}

bool Session::is_in_transaction() const noexcept {
  return is_open() && PQtransactionStatus(connection_) == PQTRANS_INTRANS &&
         PQpipelineStatus(connection_) == PQ_PIPELINE_OFF;
}

bool Session::is_in_failed_transaction() const noexcept {
  return is_open() && PQtransactionStatus(connection_) == PQTRANS_INERROR &&
         PQpipelineStatus(connection_) == PQ_PIPELINE_OFF;
}

}  // namespace idem::postgres
