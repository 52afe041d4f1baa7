#include "store/sqlite/file_judgement.hpp"

#include "core/bytes/checksum.hpp"
#include "store/sqlite/meta.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/sqlite/tolerant_rows.hpp"

#include <idem/assert.hpp>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

namespace idem::sqlite {
namespace {

std::string why_corrupt(sqlite3* db) {
  TolerantRows rows(db, "PRAGMA quick_check(1)");
  std::string verdict;
  if (rows.step()) verdict = rows.bytes(0);
  if (!rows.failure().empty()) return rows.failure();
  return verdict == "ok" ? std::string() : verdict;
}

struct Definition {
  std::string name;
  std::string text;  ///< With its type and its table.
};

/// Of the tables, indexes and triggers of a database.
std::expected<std::vector<Definition>, std::string> definitions_in(sqlite3* db) {
  TolerantRows rows(db,
                    "SELECT name, type || ' of ' || tbl_name || ': ' || sql FROM sqlite_schema"
                    " WHERE sql IS NOT NULL ORDER BY name");
  std::vector<Definition> all;
  while (rows.step()) all.push_back({std::string(rows.bytes(0)), std::string(rows.bytes(1))});
  if (!rows.failure().empty()) return std::unexpected(rows.failure());
  return all;
}

/// Those that the migrations make up to a version.
std::vector<Definition> made_definitions(std::int64_t version) {
  sqlite3* raw = nullptr;
  std::string script;
  for (const Migration& migration : migrations()) {
    if (migration.version <= version) script += migration.sql;
  }
  const bool is_open =
      sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK;
  const Connection memory(raw);
  IDEM_ASSERT(is_open && text_value(raw, script.c_str()));
  return definitions_in(raw).value();
}

/// Without what ALTER TABLE may write otherwise in another version of SQLite.
std::string without_blanks_and_quotes(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '"'; });
  return text;
}

/// Those of a store in the order of `made`. A service may have others in the file. The error: one
/// is missing, a part of a sentence.
std::expected<std::vector<Definition>, std::string> definitions_of_store(
    sqlite3* db, const std::vector<Definition>& made) {
  const auto all = definitions_in(db);
  if (!all) return std::unexpected(all.error());
  std::vector<Definition> found;
  for (const Definition& one : made) {
    const auto at = std::ranges::find(*all, one.name, &Definition::name);
    if (at == all->end()) return std::unexpected("the definition of " + one.name + " is missing");
    found.push_back(*at);
  }
  return found;
}

std::int64_t checksum_of(const std::vector<Definition>& definitions) {
  std::string all;
  for (const Definition& one : definitions) (all += one.text) += '\0';
  return std::bit_cast<std::int64_t>(
      idem::checksum_of(RecordId{}, all, Meta::schema_checksum_name));
}

/// Before anything trusts the clock, the fences and the identity.
std::optional<std::string> why_untrusted(sqlite3* db, std::int64_t version_before) {
  if (version_before < Meta::first_version_with_checksums) return std::nullopt;
  const Connection copy = copy_of_meta(db);
  if (!copy) return std::string("is damaged: its identity cannot be read: ") + sqlite3_errmsg(db);
  const auto damage = Meta(copy.get()).what_is_damaged();
  if (!damage) return std::nullopt;
  return "is damaged: " + *damage +
         ". Every key could run again, so it is not opened and nothing was changed: bring back a "
         "copy of the file that has all of its records";
}

}  // namespace

std::string corrupt_because(std::string why) {
  std::ranges::replace(why, '\n', ' ');
  return "is corrupt: " + why +
         ". Nothing was changed: bring back a copy of the file that has all of its records, or "
         "keep what can be read (idem store recover)";
}

std::expected<AllRecords, std::string> judge_content(sqlite3* db, std::int64_t version_before) {
  const auto corrupt = [](std::string why) {
    return std::unexpected(corrupt_because(std::move(why)));
  };
  if (const std::string why = why_corrupt(db); !why.empty()) return corrupt(why);
  if (auto why = why_definitions_differ(db, migrations().back().version)) {
    return corrupt(std::move(*why));
  }
  if (const auto why = why_untrusted(db, version_before)) return std::unexpected(*why);
  auto all = read_all_records(db);
  if (!all) return corrupt(all.error());
  return all;
}

// By SQLite's descriptor: closing another one would drop its locks.
std::optional<std::string> why_only_readable(sqlite3* db) {
  constexpr int write_version_at = 18;  // SQLite's file format, section 1.3.
  constexpr unsigned char known = 2;
  sqlite3_file* file = nullptr;
  unsigned char version = 0;
  const bool is_read =
      sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
      file->pMethods != nullptr &&
      file->pMethods->xRead(file, &version, 1, write_version_at) == SQLITE_OK;
  if (!is_read || version <= known) return std::nullopt;
  return "byte 18 of its header is " + std::to_string(version) + ", and no SQLite writes that";
}

std::optional<std::string> why_definitions_differ(sqlite3* db, std::int64_t version) {
  const auto made = made_definitions(version);
  const auto found = definitions_of_store(db, made);
  if (!found) return found.error();
  std::string differs;
  for (std::size_t i = 0; i < made.size() && differs.empty(); ++i) {
    if (without_blanks_and_quotes((*found)[i].text) != without_blanks_and_quotes(made[i].text)) {
      differs = made[i].name;
    }
  }
  if (differs.empty()) return std::nullopt;
  // Another version of SQLite may have written another text for the same change.
  const Connection copy = copy_of_meta(db);
  const auto noted = copy ? Meta(copy.get()).integer(Meta::schema_checksum_name) : std::nullopt;
  if (noted == checksum_of(*found)) return std::nullopt;
  return "the definition of " + differs + " is not what was written";
}

void note_definitions(sqlite3* db) {
  const auto found = definitions_of_store(db, made_definitions(migrations().back().version));
  if (found) Meta(db).put_integer(Meta::schema_checksum_name, checksum_of(*found));
}

Connection copy_of_meta(sqlite3* db) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE, nullptr);
  Connection copy(raw);
  if (code != SQLITE_OK) return nullptr;
  struct Table {
    std::string name;
    std::string columns;
  };
  const Table tables[] = {{"idem_meta", "name, value, checksum"},
                          {"idem_digest_secrets", "generation, id"},
                          {"idem_route_names", "position, methods, pattern, name, formerly"}};
  for (const auto& [table, columns] : tables) {
    const std::string made = "CREATE TABLE " + table + " (" + columns + ", PRIMARY KEY (" +
                             columns.substr(0, columns.find(',')) + "))";
    if (!text_value(raw, made.c_str())) return nullptr;
    const std::string all = "SELECT " + columns + " FROM " + table;
    TolerantRows rows(db, all.c_str());
    while (rows.step()) {
      if (!rows.copy_to(raw, table)) return nullptr;
    }
    if (!rows.failure().empty()) return nullptr;
  }
  return copy;
}

}  // namespace idem::sqlite
