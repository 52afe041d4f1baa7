#include "core/bytes/ascii.hpp"
#include "core/exchange/policy.hpp"
#include "core/transitions/verb_check.hpp"
#include "store/mysql/step_sql.hpp"

#include <idem/assert.hpp>
#include <idem/mysql.hpp>
#include <idem/store.hpp>

#include <mysql.h>

namespace idem::inline v0_1 {
namespace {

constexpr unsigned bad_argument = 31005;

/// Reads all results of what was sent. 0: all of them were there.
unsigned take_results(st_mysql* connection) {
  for (;;) {
    MYSQL_RES* const rows = mysql_store_result(connection);
    if (rows != nullptr) mysql_free_result(rows);
    if (mysql_errno(connection) != 0) return mysql_errno(connection);
    const int next = mysql_next_result(connection);
    if (next != 0) return next > 0 ? mysql_errno(connection) : 0;
  }
}

bool is_lost(unsigned code) noexcept { return code >= 2000 && code < 3000; }

std::expected<void, MysqlError> ask(st_mysql* connection, const std::string& sql) {
  unsigned code = 0;
  if (mysql_real_query(connection, sql.data(), sql.size()) != 0) {
    code = mysql_errno(connection);
  } else {
    code = take_results(connection);
  }
  if (code == 0) return {};
  return std::unexpected(MysqlError{is_lost(code) ? 0 : code, mysql_error(connection)});
}

/// As the functions of the SQL face do: the servers let a transaction go on after an error.
void roll_back(st_mysql* connection) { (void)ask(connection, "ROLLBACK"); }

std::expected<void, MysqlError> ask_for(st_mysql* connection, const StoreCall& call) {
  IDEM_ASSERT(connection != nullptr);
  // Without one, the statement would commit at once, without the rows.
  const bool commits = (connection->server_status & SERVER_STATUS_AUTOCOMMIT) != 0;
  const bool is_open = (connection->server_status & SERVER_STATUS_IN_TRANS) != 0;
  if (commits && !is_open) {
    return std::unexpected(MysqlError{bad_argument, "no transaction is open"});
  }
  const char* const database = connection->db;
  if (database == nullptr) {
    roll_back(connection);
    return std::unexpected(MysqlError{bad_argument, "the connection has chosen no database"});
  }
  if (auto bad = what_is_wrong(call)) {
    roll_back(connection);
    return std::unexpected(MysqlError{bad_argument, std::move(*bad)});
  }
  auto done = ask(connection, mysql::step_sql("", call));
  if (!done && done.error().code != 0) roll_back(connection);
  return done;
}

}  // namespace

std::expected<void, MysqlError> complete_on(st_mysql* connection, const RecordId& id,
                                            const AttemptRef& attempt,
                                            const StoredResponse& response,
                                            std::string_view upstream_reference) {
  // As every face does (protocol.md §14).
  StoredResponse stored = response;
  keep_storable(stored.headers);
  for (Field& field : stored.headers) field.value = std::string(trimmed(field.value));
  return ask_for(connection, StoreCall(Complete{id, attempt, std::move(stored),
                                                std::string(upstream_reference)}));
}

std::expected<void, MysqlError> advance_on(st_mysql* connection, const RecordId& id,
                                           const AttemptRef& attempt,
                                           std::string_view recovery_point) {
  return ask_for(connection, StoreCall(Advance{id, attempt, std::string(recovery_point)}));
}

}  // namespace idem::inline v0_1
