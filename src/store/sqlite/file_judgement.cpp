#include "store/sqlite/file_judgement.hpp"

#include "core/bytes/checksum.hpp"
#include "store/sqlite/meta.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/sqlite/tolerant_rows.hpp"

#include <algorithm>
#include <bit>
#include <optional>

namespace idem::sqlite {
namespace {

std::string why_corrupt(sqlite3* db) {
  TolerantRows rows(db, "PRAGMA quick_check(1)");
  std::string verdict;
  if (rows.step()) verdict = rows.bytes(0);
  if (!rows.failure().empty()) return rows.failure();
  return verdict == "ok" ? std::string() : verdict;
}

std::optional<std::string> why_tables_lack(sqlite3* db) {
  TolerantRows rows(db,
                    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN"
                    " ('idem_running', 'idem_slots', 'idem_requests', 'idem_evidence', 'idem_meta',"
                    " 'idem_route_names', 'idem_digest_secrets') OR name = 'slots_by_due'");
  if (rows.step() && rows.integer(0) == 8) return std::nullopt;
  return "tables are missing: it is damaged";
}

/// A damaged name of a column, trigger or constraint would end the process at the statement that
/// meets it. A service may have tables of its own in the file.
std::expected<std::int64_t, std::string> checksum_of_schema(sqlite3* db) {
  TolerantRows rows(db,
                    "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema"
                    " WHERE tbl_name GLOB 'idem_*' AND (name GLOB 'idem_*' OR name GLOB 'slots_*'"
                    "   OR name GLOB 'evidence_*' OR name GLOB 'journal_*' OR name GLOB 'audit_*')"
                    " ORDER BY name");
  std::string all;
  while (rows.step()) {
    for (int at = 0; at < 4; ++at) (all += rows.bytes(at)) += '\0';
  }
  if (!rows.failure().empty()) return std::unexpected(rows.failure());
  return std::bit_cast<std::int64_t>(checksum_of(RecordId{}, all, Meta::schema_checksum_name));
}

/// Before anything trusts the clock, the fences and the identity.
std::optional<std::string> why_untrusted(sqlite3* db, std::int64_t version_before) {
  if (version_before < Meta::first_version_with_checksums) return std::nullopt;
  const Connection copy = copy_of_meta(db);
  if (!copy) return std::string("is damaged: its identity cannot be read: ") + sqlite3_errmsg(db);
  Meta meta(copy.get());
  auto damage = meta.what_is_damaged();
  const auto schema = checksum_of_schema(db);
  const auto noted = meta.integer(Meta::schema_checksum_name);
  const bool is_latest = version_before == migrations().back().version;
  if (!damage && is_latest && noted && schema != *noted) {
    damage = "the definitions of its tables do not match their checksum";
  }
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
  if (auto why = why_only_readable(db)) return corrupt(std::move(*why));
  if (const std::string why = why_corrupt(db); !why.empty()) return corrupt(why);
  if (const auto why = why_tables_lack(db)) return std::unexpected(*why);
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

void note_schema(sqlite3* db) {
  if (const auto schema = checksum_of_schema(db)) {
    Meta(db).put_integer(Meta::schema_checksum_name, *schema);
  }
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
