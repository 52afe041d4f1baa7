#include "store/postgres/connection.hpp"

#include "loop/connecting.hpp"
#include "store/postgres/libpq.hpp"

#include <idem/assert.hpp>

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>

namespace idem::postgres {

void Rows::Free::operator()(pg_result* result) const noexcept { PQclear(result); }

int Rows::size() const noexcept { return PQntuples(result_.get()); }

int Rows::columns() const noexcept { return PQnfields(result_.get()); }

std::uint32_t Rows::type(int column) const noexcept { return PQftype(result_.get(), column); }

std::string_view Rows::command() const noexcept { return PQcmdStatus(result_.get()); }

bool Rows::is_null(int row, int column) const noexcept {
  return PQgetisnull(result_.get(), row, column) == 1;
}

std::string_view Rows::cell(int row, int column) const noexcept {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

Connection::Connection(Loop& loop, std::string uri) : Timed(loop), uri_(std::move(uri)) {}

Connection::~Connection() { close(); }

void Connection::close() noexcept {
  unwatch_socket();
  known_.clear();
  PQfinish(std::exchange(connection_, nullptr));
}

bool Connection::is_still_there() const noexcept {
  if (connection_ == nullptr) return false;
  // Bytes to read without a question are the server's goodbye.
  pollfd looked{PQsocket(connection_), POLLIN, 0};
  return ::poll(&looked, 1, 0) == 0;
}

int Connection::backend() const noexcept { return PQbackendPID(connection_); }
std::string Connection::place() const { return place_of(connection_); }

void Connection::watch_socket() {
  unwatch_socket();
  watched_.emplace(loop_, PQsocket(connection_));
}

// The socket is libpq's to close.
void Connection::unwatch_socket() noexcept { watched_.reset(); }

void Connection::tick(MonotonicTime now) {
  if (waiting_ && now >= deadline_ && watched_) watched_->cancel();
}

Task<bool> Connection::ready(Way way) {
  if (MonotonicClock::now() >= deadline_) co_return false;
  const auto start = [&](Resumption<bool> woken) { watched_->wait(way, std::move(woken)); };
  waiting_ = true;
  auto waiting = suspend<bool>(start);
  const bool is_ready = co_await waiting;
  waiting_ = false;
  co_return is_ready;
}

namespace {

/// What an operator does about a code (PostgreSQL documentation, appendix A) whose message does not
/// say it.
struct ServerAdvice {
  std::string_view sqlstate;
  std::string_view todo;
};
constexpr ServerAdvice server_advice[] = {
    {"57014",
     "a limit of time ended the statement (SHOW statement_timeout as this role; ALTER ROLE ... SET "
     "statement_timeout = 0 takes it away), or an operator did (pg_cancel_backend)"},
    {"42501",
     "this role lacks the right: connect as the role that owns the schema 'idem', or have that "
     "role "
     "grant it"},
    {"25P03", "idle_in_transaction_session_timeout ended the session: raise it for this role"},
    {"53100", "the server's disk is full: make room there"},
    {"53200", "the server has no memory left: its log says what used it"},
    {"53300", "end other sessions, or raise max_connections"},
    {"55P03", "another session holds a lock: pg_locks and pg_blocking_pids name it"},
    {"58030", "the server's disk failed: look at its log before anything else"},
    {"XX001", "the server's files are damaged: look at its log before anything else"},
    {"XX002", "an index of the server is damaged: its log names it, REINDEX makes it anew"},
};

}  // namespace

std::string failure_text(const Failure& failure) {
  if (failure.sqlstate.empty()) return failure.message;
  std::string text = fmt::format("{} ({})", failure.message, failure.sqlstate);
  for (const ServerAdvice& one : server_advice) {
    if (one.sqlstate == failure.sqlstate) text.append("; ").append(one.todo);
  }
  return text;
}

Failure Connection::lost(bool was_sent) {
  Failure failure{{}, trouble_of(connection_), was_sent};
  if (MonotonicClock::now() >= deadline_) failure.message = no_answer;
  close();
  return failure;
}

Task<std::expected<void, std::string>> Connection::open(Millis patience) {
  close();
  if (auto unreadable = why_unreadable(uri_)) co_return std::unexpected(std::move(*unreadable));
  deadline_ = MonotonicClock::now() + patience;
  Places places(uri_);
  if (places.hosts().empty()) {
    auto opening = open_at(std::nullopt);
    co_return co_await std::move(opening);
  }
  for (std::size_t i = 0; i < places.hosts().size(); ++i) {
    const NamedHost& host = places.hosts()[i];
    auto looking_up = look_up(loop_, host.name, host.port, deadline_);
    const auto found = co_await std::move(looking_up);
    places.found(i, found);
  }
  for (Peers peers = places.peers(); !peers.empty(); peers = places.peers()) {
    Peer peer = peers.front();
    if (peers.size() > 1) {
      auto racing = first_that_accepts(loop_, peers, deadline_);
      const auto accepted = co_await std::move(racing);
      if (!accepted) {
        places.none_accepted(accepted.error());
        break;
      }
      peer = *accepted;
    }
    auto opening = open_at(places.take(peer));
    auto opened = co_await std::move(opening);
    if (opened) co_return opened;
    places.failed(opened.error());
  }
  co_return std::unexpected(places.why_none());
}

Task<std::expected<void, std::string>> Connection::open_at(std::optional<Place> place) {
  connection_ = begin_connecting(uri_, place ? &*place : nullptr);
  auto step =
      PQstatus(connection_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (step == PGRES_POLLING_READING || step == PGRES_POLLING_WRITING) {
    watch_socket();  // Each step may open another one.
    const bool is_ready =
        co_await ready(step == PGRES_POLLING_READING ? Way::readable : Way::writable);
    step = is_ready ? PQconnectPoll(connection_) : PGRES_POLLING_FAILED;
  }
  if (step == PGRES_POLLING_OK && PQsetnonblocking(connection_, 1) == 0) {
    watch_socket();
    co_return std::expected<void, std::string>();
  }
  co_return std::unexpected(lost(false).message);
}

Task<QueryResult> Connection::ask(std::string_view sql, const Params& params, Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  const Params::Raw raw = params.raw();
  static_assert(sizeof(Oid) == sizeof(std::uint32_t));
  const std::string statement(sql);
  const int sent =
      PQsendQueryParams(connection_, statement.c_str(), params.size(), raw.types.data(),
                        raw.values.data(), raw.lengths.data(), raw.formats.data(), 1);
  if (sent != 1) co_return std::unexpected(lost(false));
  Task<QueryResult> answering = answer();
  co_return co_await std::move(answering);
}

std::string Connection::name_for(std::string_view sql) {
  // A pooler's sessions outlive this process, so the name must depend on the whole text. Names are
  // cut to 63 bytes, so it begins with a digest of the text.
  std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : sql) digest = (digest ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  const auto from = std::min(sql.find("idem."), sql.size());
  return fmt::format("{:016x} {}", digest, sql.substr(from, sql.substr(from, 40).find('(')));
}

Task<bool> Connection::prepare(const std::string& name, std::string_view sql,
                               const Params& params) {
  const Params::Raw raw = params.raw();
  const std::string statement(sql);
  if (PQsendPrepare(connection_, name.c_str(), statement.c_str(), params.size(),
                    raw.types.data()) != 1) {
    lost(false);
    co_return false;
  }
  Task<QueryResult> preparing = answer();
  const QueryResult prepared = co_await std::move(preparing);
  // 42P05: the server has it already.
  co_return prepared.has_value() || prepared.error().sqlstate == "42P05";
}

Task<QueryResult> Connection::ask_often(std::string_view sql, const Params& params,
                                        Millis patience) {
  IDEM_ASSERT(is_open());
  const auto [known, is_new] = known_.try_emplace(std::string(sql), Known::asked);
  if (is_new || known->second == Known::unpreparable) {
    co_return co_await ask(sql, params, patience);
  }
  deadline_ = MonotonicClock::now() + patience;
  const std::string name = name_for(sql);
  if (known->second == Known::asked) {
    const bool is_there = co_await prepare(name, sql, params);
    if (!is_open()) co_return std::unexpected(Failure{{}, "the connection was lost", false});
    known->second = is_there ? Known::prepared : Known::unpreparable;
    if (!is_there) co_return co_await ask(sql, params, patience);
  }
  const Params::Raw raw = params.raw();
  const int sent = PQsendQueryPrepared(connection_, name.c_str(), params.size(), raw.values.data(),
                                       raw.lengths.data(), raw.formats.data(), 1);
  if (sent != 1) co_return std::unexpected(lost(false));
  Task<QueryResult> answering = answer();
  QueryResult answered = co_await std::move(answering);
  // 26000: this server behind a pooler does not know the name. 0A000: the result has other columns
  // now, or a function of the statement raised it. In each case nothing was committed. Only if the
  // text succeeds, the name was the cause.
  if (!answered && is_open() &&
      (answered.error().sqlstate == "26000" || answered.error().sqlstate == "0A000")) {
    Task<QueryResult> asking = ask(sql, params, patience);
    QueryResult again = co_await std::move(asking);
    if (again) known_.insert_or_assign(std::string(sql), Known::unpreparable);
    co_return again;
  }
  co_return answered;
}

Task<QueryResult> Connection::run(std::string_view script, Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  const std::string statements(script);
  if (PQsendQuery(connection_, statements.c_str()) != 1) co_return std::unexpected(lost(false));
  Task<QueryResult> answering = answer();
  co_return co_await std::move(answering);
}

Task<QueryResult> Connection::answer() {
  for (;;) {
    const int left = PQflush(connection_);
    if (left == 0) break;
    if (left < 0) co_return std::unexpected(lost(true));
    const bool is_writable = co_await ready(Way::writable);
    if (!is_writable || PQconsumeInput(connection_) == 0) co_return std::unexpected(lost(true));
  }
  std::optional<Rows> rows;
  std::optional<Failure> failure;
  for (;;) {
    while (PQisBusy(connection_) != 0) {
      const bool is_readable = co_await ready(Way::readable);
      if (!is_readable || PQconsumeInput(connection_) == 0) co_return std::unexpected(lost(true));
    }
    PGresult* const result = PQgetResult(connection_);
    if (result == nullptr) break;
    Rows held(result);
    if (was_answered(result)) {
      rows = std::move(held);
      continue;
    }
    failure = failure_of(result);
    if (!failure) co_return std::unexpected(lost(true));
  }
  // An error that ends the session may come behind a commit, from a server that stops or from a
  // pooler. So it counts as a lost reply, and the caller repeats the call. 40003 says itself that
  // nobody knows how far the statement came.
  const bool is_unknown = failure && failure->sqlstate == "40003";
  if (is_unknown || PQstatus(connection_) != CONNECTION_OK) {
    Failure gone = lost(true);
    if (failure) gone.message = std::move(failure->message);
    co_return std::unexpected(std::move(gone));
  }
  if (failure) co_return std::unexpected(std::move(*failure));
  if (!rows) co_return std::unexpected(lost(true));
  co_return std::move(*rows);
}

}  // namespace idem::postgres
