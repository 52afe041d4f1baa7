#include "store/postgres/connection.hpp"

#include <idem/assert.hpp>

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>

namespace idem::postgres {

using boost::system::error_code;

namespace {

void say_nothing(void*, const PGresult*) {}

bool was_answered(const PGresult* result) noexcept {
  const auto status = PQresultStatus(result);
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/// On one line.
std::string trimmed(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// Why libpq cannot read a URI; none: it can. What it quotes of it may be a password.
std::optional<std::string> why_unreadable(const std::string& uri) {
  char* message = nullptr;
  PQconninfoOption* const options = PQconninfoParse(uri.c_str(), &message);
  if (options != nullptr) return PQconninfoFree(options), std::nullopt;
  const std::string said = message != nullptr ? message : "out of memory";
  PQfreemem(message);
  return trimmed(said.substr(0, said.find(':')));
}

}  // namespace

void Rows::Free::operator()(pg_result* result) const noexcept { PQclear(result); }

int Rows::size() const noexcept { return PQntuples(result_.get()); }

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

void Connection::watch_socket() {
  unwatch_socket();
  descriptor_.emplace(loop_.context(), PQsocket(connection_));
}

// The socket is libpq's to close.
void Connection::unwatch_socket() noexcept {
  if (descriptor_) descriptor_->release();
  descriptor_.reset();
}

void Connection::tick(MonotonicTime now) {
  if (waiting_ && now >= deadline_ && descriptor_) descriptor_->cancel();
}

Task<bool> Connection::ready(Until what) {
  if (MonotonicClock::now() >= deadline_) co_return false;
  const auto start = [&](Resumption<error_code> woken) {
    const auto event = what == Until::readable ? Descriptor::wait_read : Descriptor::wait_write;
    descriptor_->async_wait(event, std::move(woken));
  };
  waiting_ = true;
  auto waiting = suspend<error_code>(start);
  const error_code error = co_await waiting;
  waiting_ = false;
  co_return !error;
}

std::string Connection::why() const {
  std::string message = trimmed(PQerrorMessage(connection_));
  // Of a URI with a slip in it this quotes what may be the password.
  if (message.starts_with("invalid ")) message.resize(std::min(message.find('"'), message.size()));
  return message.empty() ? "the connection was lost" : message;
}

Failure Connection::lost(bool was_sent) {
  Failure failure{{}, why(), was_sent};
  if (MonotonicClock::now() >= deadline_) failure.message = "no answer in time";
  close();
  return failure;
}

Task<std::expected<void, std::string>> Connection::open(Millis patience) {
  close();
  if (auto unreadable = why_unreadable(uri_)) co_return std::unexpected(std::move(*unreadable));
  deadline_ = MonotonicClock::now() + patience;
  // What the URI says itself, stands; a store that must not forget has to be written to.
  const char* const names[] = {"target_session_attrs", "client_encoding", "application_name",
                               "dbname", nullptr};
  const char* const values[] = {"read-write", "UTF8", "idem", uri_.c_str(), nullptr};
  connection_ = PQconnectStartParams(names, values, 1);
  IDEM_ASSERT(connection_ != nullptr);
  PQsetNoticeReceiver(connection_, say_nothing, nullptr);
  auto step =
      PQstatus(connection_) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (step == PGRES_POLLING_READING || step == PGRES_POLLING_WRITING) {
    watch_socket();  // It may be another one after each step.
    const bool is_ready =
        co_await ready(step == PGRES_POLLING_READING ? Until::readable : Until::writable);
    step = is_ready ? PQconnectPoll(connection_) : PGRES_POLLING_FAILED;
  }
  if (step == PGRES_POLLING_OK && PQsetnonblocking(connection_, 1) == 0) {
    watch_socket();
    co_return std::expected<void, std::string>();
  }
  co_return std::unexpected(lost(false).message);
}

Task<Answer> Connection::ask(std::string_view sql, const Params& params, Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  const Params::Raw raw = params.raw();
  static_assert(sizeof(Oid) == sizeof(std::uint32_t));
  const std::string statement(sql);
  const int sent =
      PQsendQueryParams(connection_, statement.c_str(), params.size(), raw.types.data(),
                        raw.values.data(), raw.lengths.data(), raw.formats.data(), 1);
  if (sent != 1) co_return std::unexpected(lost(false));
  Task<Answer> answering = answer();
  co_return co_await std::move(answering);
}

std::string Connection::name_for(std::string_view sql) {
  // A pooler's sessions outlive this process: the text itself would be the safest name, and is cut
  // to 63 bytes; so what is behind them goes in as a number.
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
  Task<Answer> preparing = answer();
  const Answer prepared = co_await std::move(preparing);
  // 42P05: it is there already.
  co_return prepared.has_value() || prepared.error().sqlstate == "42P05";
}

Task<Answer> Connection::ask_often(std::string_view sql, const Params& params, Millis patience) {
  IDEM_ASSERT(is_open());
  const auto [known, is_new] = known_.try_emplace(std::string(sql), Known::asked);
  if (is_new || known->second == Known::not_to_be) {
    co_return co_await ask(sql, params, patience);
  }
  deadline_ = MonotonicClock::now() + patience;
  const std::string name = name_for(sql);
  if (known->second == Known::asked) {
    const bool is_there = co_await prepare(name, sql, params);
    if (!is_open()) co_return std::unexpected(Failure{{}, "the connection was lost", false});
    known->second = is_there ? Known::prepared : Known::not_to_be;
    if (!is_there) co_return co_await ask(sql, params, patience);
  }
  const Params::Raw raw = params.raw();
  const int sent = PQsendQueryPrepared(connection_, name.c_str(), params.size(), raw.values.data(),
                                       raw.lengths.data(), raw.formats.data(), 1);
  if (sent != 1) co_return std::unexpected(lost(false));
  Task<Answer> answering = answer();
  Answer answered = co_await std::move(answering);
  // 26000: this server of a pooler's does not know it; 0A000: what it answers has another shape
  // now. It was not executed, or undone.
  if (!answered && is_open() &&
      (answered.error().sqlstate == "26000" || answered.error().sqlstate == "0A000")) {
    known->second = Known::not_to_be;
    co_return co_await ask(sql, params, patience);
  }
  co_return answered;
}

Task<Answer> Connection::run(std::string_view script, Millis patience) {
  IDEM_ASSERT(is_open());
  deadline_ = MonotonicClock::now() + patience;
  const std::string statements(script);
  if (PQsendQuery(connection_, statements.c_str()) != 1) co_return std::unexpected(lost(false));
  Task<Answer> answering = answer();
  co_return co_await std::move(answering);
}

Task<Answer> Connection::answer() {
  for (;;) {
    const int left = PQflush(connection_);
    if (left == 0) break;
    if (left < 0) co_return std::unexpected(lost(true));
    const bool is_writable = co_await ready(Until::writable);
    if (!is_writable || PQconsumeInput(connection_) == 0) co_return std::unexpected(lost(true));
  }
  std::optional<Rows> rows;
  std::optional<Failure> failure;
  for (;;) {
    while (PQisBusy(connection_) != 0) {
      const bool is_readable = co_await ready(Until::readable);
      if (!is_readable || PQconsumeInput(connection_) == 0) co_return std::unexpected(lost(true));
    }
    PGresult* const result = PQgetResult(connection_);
    if (result == nullptr) break;
    Rows held(result);
    if (was_answered(result)) {
      rows = std::move(held);
      continue;
    }
    const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char* const message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (state == nullptr) co_return std::unexpected(lost(true));
    failure = Failure{state, message != nullptr ? message : "", false};
  }
  // An error that ends the session may come behind a commit, whoever sent it: a server that is told
  // to stop, or a pooler. A repeat costs less than a guess.
  if (PQstatus(connection_) != CONNECTION_OK) {
    Failure gone = lost(true);
    if (failure) gone.message = std::move(failure->message);
    co_return std::unexpected(std::move(gone));
  }
  if (failure) co_return std::unexpected(std::move(*failure));
  if (!rows) co_return std::unexpected(lost(true));
  co_return std::move(*rows);
}

}  // namespace idem::postgres
