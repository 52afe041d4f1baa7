#include "store/postgres/schema.hpp"

#include "store/postgres/cells.hpp"
#include "store/postgres/migrations.hpp"
#include "store/postgres/table_locks.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>

namespace idem::postgres {
namespace {

using Problem = std::optional<std::string>;

/// The schema in a database.
struct Found {
  bool is_there = false;
  int version = 0;            ///< Of the tables.
  std::string checksum;       ///< Of the functions.
  std::string program;        ///< That applied them.
  bool has_had_ours = false;  ///< This program's functions are there, or were.
  bool is_newer = false;      ///< That program is newer than this one.
};

constexpr const char* what_is_there =
    "SELECT to_regclass('idem.schema_functions') IS NOT NULL,"
    " to_regclass('idem.schema_version') IS NOT NULL,"
    " EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('idem'))"
    " OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = to_regnamespace('idem'))"
    " OR EXISTS (SELECT FROM pg_type WHERE typnamespace = to_regnamespace('idem')),"
    // The schema's owner may add functions to it, and drop ours.
    " (SELECT r.rolname FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner"
    " WHERE n.oid = to_regnamespace('idem') AND NOT r.rolsuper AND r.rolname <> current_user"
    " AND NOT EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles u ON u.oid = m.member"
    " WHERE m.roleid = r.oid AND u.rolname = current_user)"
    " AND r.oid <> (SELECT d.datdba FROM pg_database d WHERE d.datname = current_database()))";
constexpr const char* which_is_there =
    "SELECT (SELECT coalesce(max(v.version), 0)::pg_catalog.int4 FROM idem.schema_version v),"
    " coalesce(f.checksum, ''), coalesce(f.program, ''),"
    " EXISTS (SELECT FROM idem.schema_functions o WHERE o.checksum = $1),"
    " coalesce(string_to_array(f.program, '.')::pg_catalog.int4[]"
    " > string_to_array($2, '.')::pg_catalog.int4[], false)"
    " FROM (VALUES (1)) one LEFT JOIN"
    " (SELECT * FROM idem.schema_functions ORDER BY number DESC LIMIT 1) f ON true";

Task<std::expected<Found, std::string>> find_schema(Connection& connection) {
  const Params no_params;
  const QueryResult there =
      co_await connection.ask(what_is_there, no_params, limits::store_reply_max);
  if (!there) co_return std::unexpected(failure_text(there.error()));
  Cells are(*there, 0);
  Found found;
  found.is_there = are.boolean();
  const bool is_older = are.boolean();
  const bool is_taken = are.boolean();
  if (!found.is_there && is_older) {
    co_return std::unexpected(
        std::string("the schema 'idem' was made before the first release, whose tables cannot be "
                    "upgraded: name a new database"));
  }
  if (!found.is_there && is_taken) {
    co_return std::unexpected(std::string("the schema 'idem' holds something else"));
  }
  if (!found.is_there && !are.is_null()) {
    co_return std::unexpected(
        fmt::format("the schema 'idem' belongs to the role '{}', who could change what is made in "
                    "it: drop it, or give it to the role of this gateway",
                    are.text()));
  }
  if (!found.is_there) co_return found;
  Params ours;
  ours.text(function_set().checksum).text(function_set().program);
  const QueryResult which = co_await connection.ask(which_is_there, ours, limits::store_reply_max);
  if (!which) co_return std::unexpected(failure_text(which.error()));
  Cells cells(*which, 0);
  found.version = static_cast<int>(cells.number());
  found.checksum = cells.text();
  found.program = cells.text();
  found.has_had_ours = cells.boolean();
  found.is_newer = cells.boolean();
  co_return found;
}

/// Why this program cannot use the schema, or may not upgrade it.
Problem why_not(const Found& found, bool may_change) {
  const int latest = migrations().back().version;
  if (found.version > latest) {
    return fmt::format("it has schema version {}, and this program knows versions up to {}",
                       found.version, latest);
  }
  const bool is_same = found.checksum == function_set().checksum;
  if (!is_same && (found.is_newer || found.has_had_ours)) {
    return fmt::format(
        "its functions are of a newer program, idem {}, which replaced those of this one: start "
        "that program",
        found.program);
  }
  if (found.version < latest && !may_change) {
    return fmt::format("it has schema version {}, and this program needs {}: {} to upgrade it",
                       found.version, latest, needs_migration);
  }
  if (!is_same && !may_change) {
    return fmt::format("its functions are of an older program, idem {}: {} to upgrade them",
                       found.program, needs_migration);
  }
  return std::nullopt;
}

Task<Problem> apply_tables(Connection& connection, int version) {
  const bool is_upgrade = version != 0 && version < migrations().back().version;
  if (is_upgrade) {
    auto held = co_await lock_all_tables(connection);
    if (held) co_return held;
  }
  for (const Migration& migration : migrations()) {
    if (migration.version <= version) continue;
    const QueryResult applied = co_await connection.run(migration.sql, limits::store_migration_max);
    if (!applied) co_return fmt::format("{}: {}", migration.name, failure_text(applied.error()));
    Params noted;
    noted.small(migration.version).text(migration.name);
    const QueryResult noting =
        co_await connection.ask("INSERT INTO idem.schema_version (version, name) VALUES ($1, $2)",
                                noted, limits::store_reply_max);
    if (!noting) co_return failure_text(noting.error());
  }
  co_return std::nullopt;
}

/// Applies all files in their order, because a body in SQL is bound to the functions that it names.
/// Then drops the functions that only the set before had; an operator's view that still needs one
/// stops the upgrade. Functions of others in the schema stay. The two sets are compared as what
/// they name: the text of one function differs with `quote_all_identifiers`.
Task<Problem> apply_functions(Connection& connection) {
  for (const FunctionFile& file : function_set().files) {
    const QueryResult applied = co_await connection.run(file.sql, limits::store_migration_max);
    if (!applied) co_return fmt::format("{}: {}", file.name, failure_text(applied.error()));
  }
  Params noted;
  noted.text(function_set().checksum).text(function_set().program);
  const QueryResult noting = co_await connection.ask(
      "INSERT INTO idem.schema_functions (checksum, program, signatures)"
      " SELECT $1, $2, array_agg(f.signature ORDER BY f.signature) FROM"
      " (SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text AS signature"
      " FROM pg_proc p WHERE p.pronamespace = 'idem'::pg_catalog.regnamespace"
      " AND p.xmin = pg_current_xact_id()::pg_catalog.xid) f",
      noted, limits::store_reply_max);
  if (!noting) co_return failure_text(noting.error());
  const Params no_params;
  const QueryResult gone = co_await connection.ask(
      "WITH sets AS (SELECT f.signatures, row_number() OVER (ORDER BY f.number DESC) AS age"
      " FROM idem.schema_functions f)"
      " SELECT coalesce('DROP FUNCTION '"
      " || string_agg(g.gone::pg_catalog.regprocedure::pg_catalog.text, ', '), '') FROM ("
      "SELECT to_regprocedure(unnest(s.signatures))::pg_catalog.oid AS gone"
      " FROM sets s WHERE s.age = 2 EXCEPT"
      " SELECT to_regprocedure(unnest(s.signatures))::pg_catalog.oid"
      " FROM sets s WHERE s.age = 1) g WHERE g.gone IS NOT NULL",
      no_params, limits::store_reply_max);
  if (!gone) co_return failure_text(gone.error());
  const std::string dropping = from_text(gone->cell(0, 0));
  if (dropping.empty()) co_return std::nullopt;
  const QueryResult dropped = co_await connection.run(dropping, limits::store_migration_max);
  if (!dropped) {
    co_return "a function that this program no longer has cannot be dropped: " +
        failure_text(dropped.error());
  }
  co_return std::nullopt;
}

}  // namespace

Task<Problem> bring_schema(Connection& connection, bool may_change) {
  const auto found = co_await find_schema(connection);
  if (!found) co_return found.error();
  if (found->is_there) {
    auto problem = why_not(*found, may_change);
    if (problem) co_return problem;
    const bool is_latest = found->version == migrations().back().version;
    if (is_latest && found->checksum == function_set().checksum) co_return std::nullopt;
  }
  auto problem = co_await apply_tables(connection, found->version);
  if (problem) co_return problem;
  // Also if only tables are new: they need policies (90_restrict.sql).
  co_return co_await apply_functions(connection);
}

}  // namespace idem::postgres
