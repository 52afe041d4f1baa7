#include "store/mysql/schema.hpp"

#include "core/bytes/ascii.hpp"
#include "store/mysql/migrations.hpp"
#include "store/mysql/sql_text.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>
#include <mysqld_error.h>

#include <algorithm>
#include <array>

namespace idem::mysql {
namespace {

using Problem = std::optional<std::string>;

constexpr const char* tables_there =
    "SELECT COALESCE(SUM(table_name = 'idem_schema'), 0), COUNT(*) FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND table_name IN ('idem_schema', 'idem_schema_functions',"
    " 'idem_slots', 'idem_waiting', 'idem_evidence', 'idem_identity', 'idem_fence', 'idem_usage',"
    " 'idem_journal')";
constexpr const char* what_is_there =
    "SELECT version, is_done FROM idem_schema ORDER BY version;"
    "SELECT checksum, program FROM idem_schema_functions ORDER BY number";
// The table of the versions comes last: with it the bookkeeping is whole.
constexpr const char* bookkeeping =
    "CREATE TABLE IF NOT EXISTS idem_schema_functions ("
    " number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, checksum VARBINARY(64) NOT NULL,"
    " program VARBINARY(64) NOT NULL, PRIMARY KEY (number)) ENGINE=InnoDB;"
    "CREATE TABLE IF NOT EXISTS idem_schema ("
    " version INT NOT NULL, name VARBINARY(255) NOT NULL, is_done TINYINT NOT NULL,"
    " PRIMARY KEY (version)) ENGINE=InnoDB";

std::array<std::int64_t, 3> numbers_of(std::string_view version) {
  std::array<std::int64_t, 3> numbers{};
  for (std::int64_t& number : numbers) {
    number = to_number(take_until(version, '.'));
  }
  return numbers;
}

/// What a file of tables was cut off behind is there already.
bool is_there_already(const Failure& failure) {
  constexpr unsigned codes[] = {ER_TABLE_EXISTS_ERROR, ER_TRG_ALREADY_EXISTS, ER_DUP_FIELDNAME,
                                ER_DUP_KEYNAME};
  return std::ranges::find(codes, failure.code) != std::end(codes);
}

Task<Problem> note(Connection& connection, const Migration& migration, bool is_done) {
  std::string sql;
  SqlText(sql)
      .sql("INSERT INTO idem_schema (version, name, is_done) VALUES (")
      .number(migration.version)
      .sql(", ")
      .bytes(migration.name)
      .sql(is_done ? ", 1)" : ", 0)")
      .sql(" ON DUPLICATE KEY UPDATE is_done = VALUES(is_done)");
  auto noting = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult noted = co_await std::move(noting);
  co_return noted ? Problem() : Problem(failure_text(noted.error()));
}

/// Statement by statement: in these files an empty line is behind each, and nowhere else.
Task<Problem> apply(Connection& connection, const Migration& migration) {
  auto beginning = note(connection, migration, false);
  Problem problem = co_await std::move(beginning);
  if (problem) co_return problem;
  std::string_view rest = migration.sql;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(";\n\n"), rest.size());
    std::string statement(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 3, rest.size()));
    auto applying = connection.run(std::move(statement), limits::store_migration_max);
    const QueryResult applied = co_await std::move(applying);
    if (!applied && !is_there_already(applied.error())) {
      co_return fmt::format("{}: {}", migration.name, failure_text(applied.error()));
    }
  }
  auto ending = note(connection, migration, true);
  co_return co_await std::move(ending);
}

/// MySQL knows no CREATE OR REPLACE for functions.
std::string for_mysql(std::string_view text) {
  constexpr std::string_view replacing = "CREATE OR REPLACE ";
  std::string sql;
  for (;;) {
    const auto at = text.find(replacing);
    sql += text.substr(0, at);
    if (at == text.npos) return sql;
    text.remove_prefix(at + replacing.size());
    const std::string_view named = text.substr(0, text.find('('));
    sql += fmt::format("DROP {} IF EXISTS {};\nCREATE ", named.substr(0, named.find(' ')),
                       named.substr(named.find(' ') + 1));
  }
}

Task<Problem> apply_functions(Connection& connection, bool is_mariadb) {
  for (const FunctionFile& file : function_set().files) {
    std::string text = is_mariadb ? std::string(file.sql) : for_mysql(file.sql);
    auto applying = connection.run(std::move(text), limits::store_migration_max);
    const QueryResult applied = co_await std::move(applying);
    if (!applied) co_return fmt::format("{}: {}", file.name, failure_text(applied.error()));
  }
  std::string sql;
  SqlText(sql)
      .sql("INSERT INTO idem_schema_functions (checksum, program) VALUES (")
      .bytes(function_set().checksum)
      .sql(", ")
      .bytes(function_set().program)
      .sql(")");
  auto noting = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult noted = co_await std::move(noting);
  co_return noted ? Problem() : Problem(failure_text(noted.error()));
}

}  // namespace

Task<std::expected<SchemaFound, std::string>> find_schema(Connection& connection) {
  SchemaFound found;
  auto looking = connection.run(tables_there, limits::store_reply_max);
  const QueryResult there = co_await std::move(looking);
  if (!there) co_return std::unexpected(failure_text(there.error()));
  if (to_number(there->front().cell(0, 0)) == 0) {
    // The first of the bookkeeping's tables alone is what a crash may leave.
    if (to_number(there->front().cell(0, 1)) > 1) {
      co_return std::unexpected(
          std::string("tables whose names begin with idem_ hold something else"));
    }
    co_return found;
  }
  auto asking = connection.run(what_is_there, limits::store_reply_max);
  const QueryResult which = co_await std::move(asking);
  if (!which) co_return std::unexpected(failure_text(which.error()));
  const Rows& versions = (*which)[0];
  for (std::size_t row = 0; row < versions.size(); ++row) {
    found.begun = static_cast<int>(to_number(versions.cell(row, 0)));
    found.is_cut_off = to_number(versions.cell(row, 1)) == 0;
    if (!found.is_cut_off) found.version = found.begun;
  }
  const Rows& sets = (*which)[1];
  found.was_made = sets.size() != 0;
  for (std::size_t row = 0; row < sets.size(); ++row) {
    found.checksum = sets.cell(row, 0);
    found.program = sets.cell(row, 1);
    found.has_had_ours |= found.checksum == function_set().checksum;
  }
  found.is_newer = numbers_of(found.program) > numbers_of(function_set().program);
  co_return found;
}

Problem why_unusable(const SchemaFound& found, bool may_change) {
  const int latest = migrations().back().version;
  if (found.begun > latest) {
    return fmt::format("it has schema version {}, and this program knows versions up to {}",
                       found.begun, latest);
  }
  // No start came to its functions, so no program has used it: this one goes on with the making.
  if (!found.was_made) return std::nullopt;
  const bool is_same = found.checksum == function_set().checksum;
  if (!is_same && (found.is_newer || found.has_had_ours)) {
    return fmt::format(
        "its functions are of a newer program, idem {}, which replaced those of this one: start "
        "that program",
        found.program);
  }
  if ((found.version < latest || found.is_cut_off) && !may_change) {
    return fmt::format("it has schema version {}, and this program needs {}: {} to upgrade it",
                       found.version, latest, needs_migration);
  }
  if (!is_same && !may_change) {
    return fmt::format("its functions are of an older program, idem {}: {} to upgrade them",
                       found.program, needs_migration);
  }
  return std::nullopt;
}

Task<Problem> bring_schema(Connection& connection, const SchemaFound& found, bool is_mariadb) {
  const bool is_latest = found.version == migrations().back().version && !found.is_cut_off;
  if (is_latest && found.checksum == function_set().checksum) co_return std::nullopt;
  if (!is_latest) {
    auto keeping = connection.run(bookkeeping, limits::store_migration_max);
    const QueryResult kept = co_await std::move(keeping);
    if (!kept) co_return failure_text(kept.error());
    for (const Migration& migration : migrations()) {
      if (migration.version <= found.version) continue;
      auto applying = apply(connection, migration);
      Problem problem = co_await std::move(applying);
      if (problem) co_return problem;
    }
  }
  auto applying = apply_functions(connection, is_mariadb);
  co_return co_await std::move(applying);
}

}  // namespace idem::mysql
