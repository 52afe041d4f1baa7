#include "store/postgres/server_check.hpp"

#include "core/which_store.hpp"
#include "store/postgres/cells.hpp"
#include "store/postgres/migrations.hpp"

#include <fmt/format.h>

namespace idem::postgres {
namespace {

/// A setting with which this store would forget, or misread.
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
    {"default_transaction_isolation", "repeatable read",
     "a reserve that lost a race has to see the winner; set it to 'read committed' for this role"},
    {"default_transaction_isolation", "serializable",
     "a reserve that lost a race has to see the winner; set it to 'read committed' for this role"},
    {"default_transaction_read_only", "on", "nothing could be reserved"},
    {"transaction_read_only", "on", "it is a standby: nothing could be reserved"},
};
constexpr int version_min = 140'000;

/// The role of this connection and the tables' owner, where policies decide what this role sees;
/// otherwise two nulls. Whether they happen to let it see everything is not asked: a store that
/// may be kept from a record takes it for one that is not there. The catalogue has no secrets, so
/// this can be read by a role that has no right in the schema.
constexpr const char* who_is_kept_from_rows =
    ", kept.role, kept.owner FROM (VALUES (1)) one LEFT JOIN"
    " (SELECT current_user::pg_catalog.text AS role,"
    " pg_catalog.pg_get_userbyid(c.relowner)::pg_catalog.text AS owner FROM pg_catalog.pg_class c"
    " WHERE c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.to_regnamespace('idem')"
    " AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog.\"char\"[])"
    " AND pg_catalog.row_security_active(c.oid) ORDER BY c.oid LIMIT 1) kept ON true";

std::string make_server_check() {
  std::string sql =
      "SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4,"
      " pg_catalog.current_setting('server_encoding')";
  for (const Unsafe& one : unsafe) {
    sql += fmt::format(", pg_catalog.current_setting('{}')", one.setting);
  }
  return sql += who_is_kept_from_rows;
}

}  // namespace

const std::string server_check_sql = make_server_check();

std::optional<std::string> why_unsafe(const Rows& rows) {
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
  if (cells.is_null()) return std::nullopt;
  const std::string role(cells.bytes());
  return fmt::format(
      "row-level security applies to the role '{}': a record that is hidden from the gateway would"
      " be run again; connect as '{}', who owns the tables, or give the role BYPASSRLS",
      role, cells.bytes());
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
