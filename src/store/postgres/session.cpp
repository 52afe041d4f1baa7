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

/// A work that was given the connection may expect the usual form, which waits while it sends.
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
  pg_conn*& connection_;  // None, once it was closed.
};

bool is_copy(const pg_result* result) noexcept {
  const auto status = PQresultStatus(result);
  return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

}  // namespace

void Session::close() noexcept { PQfinish(std::exchange(connection_, nullptr)); }

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
  if (MonotonicClock::now() >= deadline_) failure.message = "no answer in time";
  close();
  return failure;
}

std::expected<void, std::string> Session::open(const Uuid& store_id) {
  close();
  if (auto unreadable = why_unreadable(uri_)) return std::unexpected(std::move(*unreadable));
  deadline_ = MonotonicClock::now() + limits::store_connect_max;
  connection_ = begin_connecting(uri_);
  auto step =
      PQstatus(connection_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (step == PGRES_POLLING_READING || step == PGRES_POLLING_WRITING) {
    const bool is_ready = ready(step == PGRES_POLLING_READING ? POLLIN : POLLOUT);
    step = is_ready ? PQconnectPoll(connection_) : PGRES_POLLING_FAILED;
  }
  if (step != PGRES_POLLING_OK) return std::unexpected(lost(false).message);
  const auto refused = [&](std::string why) {
    close();
    return std::unexpected(std::move(why));
  };
  const Answer server = ask(server_check_sql, Params(), limits::store_reply_max);
  if (!server) return refused(told(server.error()));
  if (auto unsafe = why_unsafe(*server)) return refused(std::move(*unsafe));
  const Answer identity = ask(store_id_sql, Params(), limits::store_reply_max);
  if (!identity) return refused(told(identity.error()));
  auto found = store_id_in(*identity);
  if (!found) return refused(std::move(found.error()));
  if (*found != store_id) return refused(another_store);
  return {};
}

Answer Session::ask(std::string_view sql, const Params::Raw& params, Format format,
                    Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  const WithoutWaiting sending(connection_);
  const std::string statement(sql);
  const int sent = PQsendQueryParams(
      connection_, statement.c_str(), static_cast<int>(params.types.size()), params.types.data(),
      params.values.data(), params.lengths.data(), params.formats.data(), static_cast<int>(format));
  // Part of it may have left.
  if (sent != 1) return std::unexpected(lost(true));
  return answer();
}

Answer Session::run(std::string_view script, Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  const WithoutWaiting sending(connection_);
  const std::string statements(script);
  if (PQsendQuery(connection_, statements.c_str()) != 1) return std::unexpected(lost(true));
  return answer();
}

Answer Session::answer() {
  for (;;) {
    const int left = PQflush(connection_);
    if (left == 0) break;
    // While it does not read, the server may want to be read first.
    if (left < 0 || !ready(POLLIN | POLLOUT)) return std::unexpected(lost(true));
    if (PQconsumeInput(connection_) == 0) return std::unexpected(lost(true));
  }
  std::optional<Rows> rows;
  std::optional<Failure> failure;
  for (;;) {
    while (PQisBusy(connection_) != 0) {
      if (!ready(POLLIN) || PQconsumeInput(connection_) == 0) return std::unexpected(lost(true));
    }
    PGresult* const result = PQgetResult(connection_);
    if (result == nullptr) break;
    Rows held(result);
    if (was_answered(result)) {
      rows = std::move(held);
    } else if (PQresultStatus(result) == PGRES_EMPTY_QUERY) {
      failure = Failure{"42601", "there is no statement"};
    } else if (is_copy(result)) {
      Failure copying = lost(true);
      copying.message = "COPY cannot be run like this";
      return std::unexpected(std::move(copying));
    } else if (auto said = failure_of(result)) {
      failure = std::move(said);
    } else {
      return std::unexpected(lost(true));
    }
  }
  // As in Connection::answer(): such an error may have come behind a commit.
  if (PQstatus(connection_) != CONNECTION_OK) {
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
  // Whatever there is to read, nobody asked for it: an end, or the reason of one before it.
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
