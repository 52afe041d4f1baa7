#include "store/postgres/libpq.hpp"

#include <idem/assert.hpp>

#include <libpq-fe.h>

#include <algorithm>

namespace idem::postgres {
namespace {

void ignore_notice(void*, const PGresult*) {}

/// libpq ends a message with a newline, and may write several lines.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

std::optional<std::string> why_unreadable(const std::string& uri) {
  char* message = nullptr;
  PQconninfoOption* const options = PQconninfoParse(uri.c_str(), &message);
  if (options != nullptr) return PQconninfoFree(options), std::nullopt;
  const std::string complaint = message != nullptr ? message : "out of memory";
  PQfreemem(message);
  return on_one_line(complaint.substr(0, complaint.find(':')));
}

pg_conn* begin_connecting(const std::string& uri, const Place* place) {
  // The URI overrides these. The store needs a server that accepts writes.
  std::vector<const char*> names{"target_session_attrs", "client_encoding", "application_name",
                                 "dbname"};
  std::vector<const char*> values{"read-write", "UTF8", "idem", uri.c_str()};
  if (place != nullptr) {
    // And these override the URI.
    names.insert(names.end(), {"host", "port", "hostaddr"});
    values.insert(values.end(), {place->host.c_str(), place->port.c_str(), place->address.c_str()});
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  pg_conn* const connection = PQconnectStartParams(names.data(), values.data(), 1);
  IDEM_ASSERT(connection != nullptr);
  PQsetNoticeReceiver(connection, ignore_notice, nullptr);
  return connection;
}

std::string trouble_of(const pg_conn* connection) {
  std::string message = on_one_line(PQerrorMessage(connection));
  // For a malformed URI libpq quotes a part that may be the password.
  if (message.starts_with("invalid ")) message.resize(std::min(message.find('"'), message.size()));
  return message.empty() ? "the connection was lost" : message;
}

std::string place_of(const pg_conn* connection) {
  const auto text = [](const char* part) { return std::string(part != nullptr ? part : ""); };
  return text(PQhost(connection)) + ':' + text(PQport(connection)) + '/' + text(PQdb(connection));
}

bool was_answered(const pg_result* result) noexcept {
  const auto status = PQresultStatus(result);
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

std::optional<Failure> failure_of(const pg_result* result) {
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr) return std::nullopt;
  const char* const detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
  return Failure{state, message != nullptr ? message : "", false, detail != nullptr ? detail : ""};
}

// "ERROR:  40P01: deadlock detected", then lines of details. The first word is in the server's
// language.
Failure last_failure_of(const pg_conn* connection) {
  constexpr std::size_t state_chars = 5;
  const std::string_view all = PQerrorMessage(connection);
  std::string_view line = all.substr(0, all.find('\n'));
  const auto is_of_state = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  const auto behind = line.find(":  ");
  if (behind != line.npos) line.remove_prefix(behind + 3);
  const std::string_view state = line.substr(0, state_chars);
  if (behind == line.npos || !line.substr(state.size()).starts_with(": ") ||
      !std::ranges::all_of(state, is_of_state)) {
    return {{}, on_one_line(std::string(line))};
  }
  return {std::string(state), on_one_line(std::string(line.substr(state_chars + 2)))};
}

}  // namespace idem::postgres
