#include "store/postgres/server_check.hpp"

#include "core/record/which_store.hpp"
#include "store/postgres/cells.hpp"
#include "store/postgres/lanes.hpp"
#include "store/postgres/migrations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace idem::postgres {
namespace {

/// A setting by which this store would lose commits, or misread.
struct Unsafe {
  const char* setting;
  const char* value;
  const char* why;
};
constexpr Unsafe unsafe[] = {
    {"fsync", "off",
     "a crash of the machine would forget reservations, and their work would run again"},
    {"full_page_writes", "off", "a crash of the machine can leave half a page, and records in it"},
    {"synchronous_commit", "off", "a crash of the server would forget what was committed"},
    {"default_transaction_isolation", "read uncommitted",
     "Idem is written for 'read committed', as which PostgreSQL treats it today; set it to "
     "'read committed' for this role"},
    {"default_transaction_isolation", "repeatable read",
     "a reserve that lost a race has to see the winner; set it to 'read committed' for this role"},
    {"default_transaction_isolation", "serializable",
     "a reserve that lost a race has to see the winner; set it to 'read committed' for this role"},
    {"default_transaction_read_only", "on", "nothing could be reserved"},
    {"transaction_read_only", "on", "it is a standby: nothing could be reserved"},
};
constexpr int version_min = 140'000;

/// One for each lane, and one that polls awaited records.
constexpr std::int64_t connections_min = lane_count + 1;

/// The standbys a commit may wait for, the numbers of connections this role may have, and the
/// server's process id: behind a pooler, the pooler divides the connections.
constexpr const char* standbys_and_connections =
    ", pg_catalog.current_setting('synchronous_commit'),"
    " pg_catalog.current_setting('synchronous_standby_names'),"
    " pg_catalog.current_setting('max_connections')::pg_catalog.int4,"
    " pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int4,"
    " COALESCE(pg_catalog.current_setting('reserved_connections', true), '0')::pg_catalog.int4,"
    " COALESCE(limits.of_role, -1), COALESCE(limits.of_database, -1),"
    " COALESCE(limits.is_super, false), pg_catalog.pg_backend_pid()";
constexpr const char* limits_of_role =
    " LEFT JOIN (SELECT r.rolconnlimit AS of_role, d.datconnlimit AS of_database,"
    " r.rolsuper AS is_super FROM pg_catalog.pg_roles r, pg_catalog.pg_database d"
    " WHERE r.rolname OPERATOR(pg_catalog.=) SESSION_USER"
    " AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()) limits ON true";

/// The role of this connection and the tables' owner if policies decide which rows the role sees;
/// otherwise two nulls. It does not matter whether they show all rows now: a store would regard a
/// hidden record as missing. Any role may read the catalogue. The journal holds no records; it is
/// hidden from every role but its owner, and a service needs none of it.
constexpr const char* who_is_kept_from_rows =
    ", kept.role, kept.owner FROM (VALUES (1)) one LEFT JOIN"
    " (SELECT current_user::pg_catalog.text AS role,"
    " pg_catalog.pg_get_userbyid(c.relowner)::pg_catalog.text AS owner FROM pg_catalog.pg_class c"
    " WHERE c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.to_regnamespace('idem')"
    " AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog.\"char\"[])"
    " AND c.relname OPERATOR(pg_catalog.<>) 'journal'"
    " AND pg_catalog.row_security_active(c.oid) ORDER BY c.oid LIMIT 1) kept ON true";

std::string make_server_check() {
  std::string sql =
      "SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4,"
      " pg_catalog.current_setting('server_encoding')";
  for (const Unsafe& one : unsafe) {
    sql += fmt::format(", pg_catalog.current_setting('{}')", one.setting);
  }
  sql += standbys_and_connections;
  sql += who_is_kept_from_rows;
  return sql += limits_of_role;
}

/// How many connections this role may have, from standbys_and_connections.
std::int64_t connections_of(Cells& cells) {
  std::int64_t most = cells.number();
  const std::int64_t for_superusers = cells.number();
  const std::int64_t for_others = cells.number();
  const std::int64_t limits[] = {cells.number(), cells.number()};
  if (cells.boolean()) return most;  // No limit but the first holds for a superuser.
  most -= for_superusers + for_others;
  for (const std::int64_t limit : limits) {
    if (limit >= 0) most = std::min(most, limit);
  }
  return most;
}

}  // namespace

const std::string server_check_sql = make_server_check();

std::optional<std::string> why_unsafe(const Rows& rows, int backend) {
  Cells cells(rows, 0);
  if (const auto version = cells.number(); version < version_min) {
    return fmt::format("the server is of version {}; 14 or later is needed", version / 10'000);
  }
  if (const auto encoding = cells.bytes(); encoding != "UTF8") {
    return fmt::format("the database's encoding is {}; it must be UTF8", encoding);
  }
  for (const Unsafe& one : unsafe) {
    const auto value = cells.bytes();
    if (value != one.value) continue;
    return fmt::format("{} is {}: {}", one.setting, value, one.why);
  }
  const bool is_local = cells.bytes() == "local";
  if (!cells.bytes().empty() && is_local) {
    return "synchronous_commit is local, and synchronous_standby_names names standbys: a failover "
           "to one of them would forget what was committed; set synchronous_commit to on for this "
           "role";
  }
  const auto connections = connections_of(cells);
  const bool is_direct = cells.number() == backend;
  if (is_direct && connections < connections_min) {
    return fmt::format(
        "this role may have {} connections, and {} are needed: raise max_connections, or the "
        "CONNECTION LIMIT of the role or the database",
        connections, connections_min);
  }
  if (cells.is_null()) return std::nullopt;
  const std::string role(cells.bytes());
  return fmt::format(
      "row-level security applies to the role '{}': a record that is hidden from the gateway would"
      " run again; connect as '{}', who owns the tables, or give the role BYPASSRLS",
      role, cells.bytes());
}

std::optional<Fence> fence_in(const Rows& rows) {
  constexpr int column = 3;
  if (rows.is_null(0, column)) return std::nullopt;
  return static_cast<Fence>(to_number(rows.cell(0, column)));
}

std::expected<Uuid, std::string> store_id_in(const Rows& rows) {
  if (rows.size() != 1) return std::unexpected(std::string("it has no identity"));
  return to_uuid(rows.cell(0, 0));
}

std::optional<std::string> why_not_this_store(const Rows& rows, const Uuid& store_id) {
  const auto found = store_id_in(rows);
  if (!found) return found.error();
  if (*found != store_id) return another_store(store_id, *found);
  Cells cells(rows, 0);
  (void)cells.bytes();
  const bool is_same =
      cells.number() == migrations().back().version && cells.bytes() == function_set().checksum;
  if (is_same) return std::nullopt;
  return "its schema was changed by another version of the program: start that version here, too";
}

}  // namespace idem::postgres
