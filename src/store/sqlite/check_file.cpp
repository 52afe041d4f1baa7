#include "store/sqlite/check_file.hpp"

#include "core/record/store_clock.hpp"
#include "core/record/which_store.hpp"
#include "store/file_access.hpp"
#include "store/sqlite/check_rows.hpp"
#include "store/sqlite/failure.hpp"
#include "store/sqlite/identity.hpp"
#include "store/sqlite/log_doubts.hpp"
#include "store/sqlite/meta.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/sqlite/open_database.hpp"
#include "store/sqlite/owner_lock.hpp"
#include "store/sqlite/restore_file.hpp"
#include "store/sqlite/snapshot.hpp"
#include "store/sqlite/tolerant_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

namespace idem::sqlite {
namespace {

using Kind = StoreFileError::Kind;

std::unexpected<StoreFileError> check_refused(std::string why) {
  return std::unexpected(StoreFileError{Kind::refused, std::move(why)});
}

std::int64_t number_of(sqlite3* db, const char* sql) {
  const auto text = text_value(db, sql);
  return text ? std::strtoll(text->c_str(), nullptr, 10) : 0;
}

std::uint64_t bytes_of(sqlite3* db) {
  return static_cast<std::uint64_t>(number_of(db, "PRAGMA page_count")) *
         static_cast<std::uint64_t>(number_of(db, "PRAGMA page_size"));
}

/// Empty: it cannot be read.
std::string store_id_in(sqlite3* db) {
  TolerantRows rows(db, "SELECT value FROM idem_meta WHERE name = 'store_id'");
  StoreId id{};
  if (!rows.step() || rows.bytes(0).size() != id.size()) return {};
  std::ranges::transform(rows.bytes(0), id.begin(),
                         [](char c) { return static_cast<std::uint8_t>(c); });
  return store_id_text(id);
}

/// That it is a store of this version, before anything reads its tables.
std::expected<void, StoreFileError> check_kind(sqlite3* db, const std::string& path) {
  if (number_of(db, "PRAGMA application_id") != application_id) {
    return check_refused(path + ": is no store of Idem; write the path of a store or of a backup");
  }
  const auto version = number_of(db, "PRAGMA user_version");
  const auto latest = migrations().back().version;
  if (version == latest) return {};
  return check_refused(fmt::format(
      "{}: has schema version {}, and this program reads version {}: use the program of its version"
      "{}",
      path, version, latest,
      version < latest ? ", or upgrade the store first (idem migrate)" : ""));
}

constexpr int links_max = 40;  // As the kernel.

void check_structure(sqlite3* db, FileFindings& findings) {
  TolerantRows rows(db, "PRAGMA integrity_check(100)");
  while (rows.step()) {
    const std::string line(rows.bytes(0));
    if (line == "ok") continue;
    findings.add("structure of the file", line, file_todo::table);
  }
  if (!rows.failure().empty()) {
    findings.add("structure of the file", rows.failure(), file_todo::table);
  }
}

/// What Meta reads, in a database in memory, because Meta ends the process at a failure: the file
/// may be damaged, and its owner may end meanwhile. Null: it cannot be read.
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
    const std::string made = fmt::format("CREATE TABLE {} ({}, PRIMARY KEY ({}))", table, columns,
                                         columns.substr(0, columns.find(',')));
    if (!text_value(raw, made.c_str())) return nullptr;
    const std::string all = fmt::format("SELECT {} FROM {}", columns, table);
    TolerantRows rows(db, all.c_str());
    while (rows.step()) {
      if (!rows.copy_to(raw, table)) return nullptr;
    }
    if (!rows.failure().empty()) return nullptr;
  }
  return copy;
}

/// Identity, fences and clock.
void check_meta(sqlite3* db, StoreFileReport& report, FileFindings& findings) {
  const Connection copy = copy_of_meta(db);
  if (!copy) {
    return findings.add("identity", std::string("it cannot be read: ") + sqlite3_errmsg(db),
                        file_todo::table);
  }
  Meta meta(copy.get());
  if (const auto damage = meta.what_is_damaged()) {
    findings.add("identity", *damage, file_todo::table);
  }
  const auto high_water = meta.fence_high_water();
  if (findings.highest_fence > high_water) {
    findings.add("fences",
                 fmt::format("a record has fence {}, and the highest that was granted is noted as "
                             "{}",
                             findings.highest_fence, high_water),
                 "nothing at once: a start goes on above both; look at the disk");
  }
  if (const auto at = meta.integer(copied_at_name)) report.copied_at = StoreTime(Millis(*at));
}

/// As a start would judge the log. Its owner writes it meanwhile, and then only damage counts.
std::expected<std::optional<std::string>, StoreFileError> look_at_log(const std::string& path,
                                                                      sqlite3* db,
                                                                      StoreFileReport& report) {
  const std::string log = path + "-wal";
  const auto judged = judge_written_log(log);
  if (!judged) return std::unexpected(StoreFileError{Kind::failed, judged.error()});
  if (auto why = why_log_refuses(log, *judged, db)) return why;
  auto doubt = doubt_of_log(log, *judged, db);
  if (doubt && !OwnerLock(path).is_taken()) report.doubts.push_back(std::move(*doubt));
  return std::nullopt;
}

/// Calls `read` as with_snapshot() does. A file that cannot be read without what its log has lost
/// is refused because of the log.
std::expected<void, StoreFileError> read_store(
    const std::string& path,
    const std::function<std::expected<void, StoreFileError>(Snapshot&)>& read) {
  if (auto why = why_no_access(path, FileUse::reading)) {
    return std::unexpected(StoreFileError{Kind::failed, std::move(*why)});
  }
  if (const auto why = why_log_has_no_database(path)) return check_refused(path + ": " + *why);
  auto done = with_snapshot(path, read);
  if (done || done.error().kind != Kind::refused) return done;
  const auto judged = judge_written_log(path + "-wal");
  if (!judged) return done;
  const auto why = why_log_refuses(path + "-wal", *judged, nullptr);
  return why ? check_refused(path + ": " + *why) : done;
}

std::string contradiction_in(sqlite3* db, const IdentitySettings& settings) {
  const Connection copy = copy_of_meta(db);
  if (!copy) return std::string("its identity cannot be read: ") + sqlite3_errmsg(db);
  Meta meta(copy.get());
  if (const auto damage = meta.what_is_damaged()) return "is damaged: " + *damage;
  return contradiction(db, copy.get(), meta, settings, wall_time());
}

}  // namespace

std::string real_path(const std::string& path) {
  std::error_code code;
  std::filesystem::path real = std::filesystem::canonical(path, code);
  if (!code) return real.string();
  // A link may lead to where an interrupted restore has left its own.
  real = path;
  for (int links = 0; links < links_max && !interrupted_restore_at(real.string()); ++links) {
    const auto target = std::filesystem::read_symlink(real, code);
    if (code) break;
    real = (real.parent_path() / target).lexically_normal();
  }
  return real.string();
}

std::string path_to_read(const std::string& path) {
  std::string real = real_path(path);
  const bool is_nowhere = why_dangling(path) && !interrupted_restore_at(real);
  return is_nowhere ? path : real;
}

std::expected<StoreFileReport, StoreFileError> check_database(sqlite3* db, const std::string& path,
                                                              const StoreFileProgress& progress) {
  if (auto fits = check_kind(db, path); !fits) return std::unexpected(std::move(fits.error()));
  StoreFileReport report;
  report.bytes = bytes_of(db);
  report.store_id = store_id_in(db);
  FileFindings findings(report);
  check_structure(db, findings);
  check_rows(db, report, findings, progress);
  check_meta(db, report, findings);
  return report;
}

std::expected<StoreFileReport, StoreFileError> look_at_file(const std::string& path,
                                                            const IdentitySettings& settings) {
  const std::string real = path_to_read(path);
  StoreFileReport report;
  auto done = read_store(real, [&](Snapshot& snapshot) -> std::expected<void, StoreFileError> {
    sqlite3* const db = snapshot.db();
    if (auto fits = check_kind(db, real); !fits) return fits;
    report = {};
    report.bytes = bytes_of(db);
    report.store_id = store_id_in(db);
    auto looked = look_at_log(real, db, report);
    if (!looked) return std::unexpected(std::move(looked.error()));
    report.contradiction = *looked ? std::move(**looked) : contradiction_in(db, settings);
    return {};
  });
  if (!done) return std::unexpected(std::move(done.error()));
  return report;
}

std::expected<StoreFileReport, StoreFileError> check_file(const std::string& path,
                                                          const StoreFileProgress& progress) {
  const std::string real = path_to_read(path);
  std::expected<StoreFileReport, StoreFileError> report;
  auto done = read_store(real, [&](Snapshot& snapshot) -> std::expected<void, StoreFileError> {
    report = check_database(snapshot.db(), real, progress);
    if (!report) return std::unexpected(report.error());
    auto looked = look_at_log(real, snapshot.db(), *report);
    if (!looked) return std::unexpected(std::move(looked.error()));
    if (*looked) FileFindings(*report).add("log", std::move(**looked), file_todo::log);
    return {};
  });
  if (!done) return std::unexpected(std::move(done.error()));
  return report;
}

}  // namespace idem::sqlite
