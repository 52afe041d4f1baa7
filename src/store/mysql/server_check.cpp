#include "store/mysql/server_check.hpp"

#include "store/mysql/sql_text.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace idem::mysql {
namespace {

using Problem = std::optional<std::string>;
using Settings = std::map<std::string, std::string, std::less<>>;

/// A setting by which this store would lose commits, or misread. Those that a server does not have
/// are not reported.
struct Unsafe {
  std::string_view setting;
  std::string_view value;
  std::string_view why;
};
constexpr std::string_view is_replica =
    "it is a replica, or is being replaced: nothing could be "
    "reserved";
constexpr std::string_view half_page =
    "a crash of the machine can leave half a page, and records in it";
constexpr Unsafe unsafe[] = {
    {"innodb_flush_log_at_trx_commit", "0",
     "a crash would forget reservations, and their work would run again; set it to 1"},
    {"innodb_flush_log_at_trx_commit", "2",
     "a crash of the machine would forget reservations, and their work would run again; set it to "
     "1"},
    {"innodb_flush_log_at_trx_commit", "3",
     "this store is made for 1, which flushes the log with each commit; set it to 1"},
    {"innodb_doublewrite", "OFF", half_page},
    {"innodb_doublewrite", "DETECT_ONLY", half_page},
    {"Innodb_redo_log_enabled", "OFF", "a crash would lose the tables"},
    {"read_only", "ON", is_replica},
    {"read_only", "1", is_replica},
    {"super_read_only", "ON", is_replica},
    {"innodb_read_only", "ON", is_replica},
    {"binlog_format", "STATEMENT",
     "its replicas would execute the statements again, and choose other rows; set it to ROW"},
};

/// What a batch of calls and one large answer or request need: such a text has each byte at most
/// twice.
constexpr std::size_t packet_min = 2 * limits::store_statement_bytes_max;

/// The clock is tried, because MySQL does not report its option sysdate-is-now.
constexpr const char* check_sql =
    "SELECT VERSION(), SLEEP(0.001), SYSDATE(6) = NOW(6);"
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit',"
    " 'innodb_doublewrite', 'read_only', 'super_read_only', 'innodb_read_only', 'binlog_format',"
    " 'log_bin', 'sync_binlog', 'sql_mode', 'wsrep_on', 'max_allowed_packet',"
    " 'innodb_force_recovery');"
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'Innodb_redo_log_enabled');"
    "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = DATABASE()"
    " AND table_name LIKE 'idem\\_%' AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'";

Problem why_old(std::string_view version) {
  const bool is_mariadb = version.find("MariaDB") != version.npos;
  const auto major = to_number(version);
  const auto dot = std::min(version.find('.'), version.size() - 1);
  const auto minor = to_number(version.substr(dot + 1));
  if (is_mariadb && (major < 10 || (major == 10 && minor < 6))) {
    return fmt::format("the server is MariaDB {}; 10.6 or later is needed", version);
  }
  if (!is_mariadb && major < 8) {
    return fmt::format("the server is MySQL {}; 8.0 or later is needed", version);
  }
  return std::nullopt;
}

std::string_view value_of(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::string_view() : std::string_view(found->second);
}

bool is_on(const Settings& settings, std::string_view name) {
  const auto value = value_of(settings, name);
  return value == "ON" || value == "1";
}

std::optional<Refusal> why_unsafe_value(const Settings& settings) {
  for (const Unsafe& one : unsafe) {
    const bool is_logged = one.setting != "binlog_format" || is_on(settings, "log_bin");
    if (is_logged && value_of(settings, one.setting) == one.value) {
      return Refusal{fmt::format("{} is {}: {}", one.setting, one.value, one.why),
                     one.why == is_replica};
    }
  }
  return std::nullopt;
}

Problem why_unsafe(const Settings& settings) {
  if (is_on(settings, "log_bin") && value_of(settings, "sync_binlog") == "0") {
    return "sync_binlog is 0: after a crash of the machine the server would roll back commits that "
           "its binary log has lost; set it to 1";
  }
  if (const auto recovery = value_of(settings, "innodb_force_recovery");
      !recovery.empty() && recovery != "0") {
    return fmt::format("innodb_force_recovery is {}: the server is being repaired", recovery);
  }
  if (value_of(settings, "sql_mode").find("STRICT_") == std::string_view::npos) {
    return "sql_mode is not strict: a service's statements would store cut or changed values; add "
           "STRICT_TRANS_TABLES";
  }
  if (is_on(settings, "wsrep_on") && to_number(value_of(settings, "wsrep_cluster_size")) > 1) {
    return "wsrep_on is ON, and the cluster has several nodes: nodes that both write would each "
           "let a key run before one of them is refused";
  }
  const auto packet = to_unsigned(value_of(settings, "max_allowed_packet"));
  if (packet < packet_min) {
    return fmt::format(
        "max_allowed_packet is {}: answers and requests would not fit; set it to {} "
        "or more",
        packet, packet_min);
  }
  return std::nullopt;
}

}  // namespace

Task<std::expected<ServerCheck, Refusal>> check_server(Connection& connection) {
  const auto refused = [](std::string why) { return std::unexpected(Refusal{std::move(why)}); };
  auto asking = connection.run(check_sql, limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return refused(failure_text(answer.error()));
  if (answer->size() != 4 || answer->front().size() != 1) {
    co_return refused("the server's reply is unknown");
  }
  const std::string version(answer->front().cell(0, 0));
  Problem problem = why_old(version);
  if (problem) co_return refused(std::move(*problem));
  if (answer->front().cell(0, 2) == "1") {
    co_return refused(
        "sysdate_is_now is ON: the store's clock would stand still within a statement, and follow "
        "a session's SET timestamp");
  }
  Settings settings;
  for (const std::size_t part : {1U, 2U}) {
    const Rows& rows = (*answer)[part];
    for (std::size_t row = 0; row < rows.size(); ++row) {
      settings.emplace(rows.cell(row, 0), rows.cell(row, 1));
    }
  }
  if (auto unsafe_value = why_unsafe_value(settings)) {
    co_return std::unexpected(std::move(*unsafe_value));
  }
  problem = why_unsafe(settings);
  if (problem) co_return refused(std::move(*problem));
  if (const Rows& tables = answer->back(); tables.size() > 0) {
    co_return refused(
        fmt::format("the table {} is of the engine {}: it keeps no transaction's promise; ALTER "
                    "TABLE {} ENGINE=InnoDB",
                    tables.cell(0, 0), tables.cell(0, 1), tables.cell(0, 0)));
  }
  ServerCheck check;
  check.is_mariadb = version.find("MariaDB") != version.npos;
  check.packet_max = to_unsigned(value_of(settings, "max_allowed_packet"));
  co_return check;
}

}  // namespace idem::mysql
