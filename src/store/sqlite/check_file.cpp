#include "store/sqlite/check_file.hpp"

#include "core/record/store_clock.hpp"
#include "core/record/which_store.hpp"
#include "store/file_access.hpp"
#include "store/sqlite/check_rows.hpp"
#include "store/sqlite/failure.hpp"
#include "store/sqlite/file_judgement.hpp"
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
  const auto owner = number_of(db, "PRAGMA application_id");
  const auto version = number_of(db, "PRAGMA user_version");
  if (owner == 0 && version == 0 && number_of(db, "SELECT count(*) FROM sqlite_schema") == 0) {
    return std::unexpected(StoreFileError{Kind::empty, path + ": is empty, and no store of Idem"});
  }
  if (owner != application_id) {
    return check_refused(path + ": is no store of Idem; write the path of a store or of a backup");
  }
  const auto latest = migrations().back().version;
  if (version == latest) return {};
  if (version < latest) {
    return check_refused(fmt::format(
        "{}: has schema version {}, and this program reads version {}: {} to upgrade it, or use "
        "the program of its version",
        path, version, latest, needs_migration));
  }
  return check_refused(fmt::format(
      "{}: has schema version {}, and this program reads version {}: use the program of its "
      "version",
      path, version, latest));
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

/// Clock and fences; judge_content() says whether they can be trusted.
void check_meta(sqlite3* db, StoreFileReport& report, FileFindings& findings) {
  const Connection copy = copy_of_meta(db);
  if (!copy) return;
  Meta meta(copy.get());
  const auto high_water = meta.fence_high_water();
  if (findings.highest_fence > high_water) {
    findings.add("fences",
                 fmt::format("a record has fence {}, and the highest that was granted is noted as "
                             "{}",
                             findings.highest_fence, high_water),
                 "nothing at once: a start goes on above both; look at the disk");
  }
  // The epoch: a recovery did not know of which moment it is.
  if (const auto at = copied_at_in(db); at && *at != StoreTime{}) report.copied_at = at;
}

/// As a start would judge the log. Its owner writes it meanwhile, and then only damage counts.
std::expected<std::optional<std::string>, StoreFileError> look_at_log(const std::string& path,
                                                                      sqlite3* db,
                                                                      StoreFileReport& report) {
  const std::string log = path + "-wal";
  const auto judged = judge_written_log(log);
  if (!judged) return std::unexpected(StoreFileError{Kind::failed, judged.error()});
  if (auto why = why_log_refuses(log, *judged, db)) return why;
  if (!OwnerLock(path).is_taken()) {
    if (auto why = why_log_is_of_another(log, *judged, db)) return why;
  }
  if (!judged->has_first_page) {
    if (auto why = why_only_readable(db)) return corrupt_because(std::move(*why));
  }
  auto doubt = doubt_of_log(log, *judged, db);
  if (doubt && !OwnerLock(path).is_taken()) report.doubts.push_back(std::move(*doubt));
  return std::nullopt;
}

std::expected<void, StoreFileError> judge_as_a_start(sqlite3* db, const std::string& path) {
  const auto judged = judge_content(db, migrations().back().version);
  if (judged) return {};
  auto failure = last_failure(db, path, FileUse::reading);
  if (!failure) return check_refused(path + ": " + judged.error());
  const bool is_the_files = failure->kind == SqliteFailure::Kind::corrupt ||
                            failure->kind == SqliteFailure::Kind::no_store;
  return std::unexpected(
      StoreFileError{is_the_files ? Kind::refused : Kind::failed, std::move(failure->why)});
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
  const bool may_be_the_logs =
      !done && (done.error().kind == Kind::refused || done.error().kind == Kind::empty);
  if (!may_be_the_logs) return done;
  const auto judged = judge_written_log(path + "-wal");
  if (!judged) return done;
  auto why = why_log_refuses(path + "-wal", *judged, nullptr);
  if (!why && !OwnerLock(path).is_taken()) why = why_log_is_of_another(path, *judged);
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

std::optional<StoreTime> copied_at_in(sqlite3* db) {
  const Connection copy = copy_of_meta(db);
  const auto at = copy ? Meta(copy.get()).integer(copied_at_name) : std::nullopt;
  return at ? std::optional(StoreTime(Millis(*at))) : std::nullopt;
}

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
  const auto judged = judge_content(db, migrations().back().version);
  if (!judged) findings.add(path, judged.error(), file_todo::key);
  check_structure(db, findings);
  check_rows(db, report, findings, progress);
  check_meta(db, report, findings);
  return report;
}

std::expected<StoreFileReport, StoreFileError> look_at_file(const std::string& path,
                                                            const IdentitySettings& settings,
                                                            LookDepth depth) {
  const std::string real = path_to_read(path);
  if (auto why = why_no_access(real, use_of_start(real))) {
    return std::unexpected(StoreFileError{Kind::failed, std::move(*why)});
  }
  StoreFileReport report;
  auto done = read_store(real, [&](Snapshot& snapshot) -> std::expected<void, StoreFileError> {
    sqlite3* const db = snapshot.db();
    if (auto fits = check_kind(db, real); !fits) return fits;
    report = {};
    report.bytes = bytes_of(db);
    report.store_id = store_id_in(db);
    auto looked = look_at_log(real, db, report);
    if (!looked) return std::unexpected(std::move(looked.error()));
    if (*looked) {
      report.contradiction = std::move(**looked);
      return {};
    }
    // What a process has open it judged at its start, and a handover does not wait for long.
    if (depth == LookDepth::whole && !OwnerLock(real).is_taken()) {
      if (auto judged = judge_as_a_start(db, real); !judged) return judged;
    }
    report.contradiction = contradiction_in(db, settings);
    const bool may_be_started = depth == LookDepth::whole && !OwnerLock(real).is_taken();
    if (report.contradiction.empty() && may_be_started) {
      const Connection copy = copy_of_meta(db);
      const bool was_cut_off = copy && Meta(copy.get()).is_open();
      report.contradiction = why_no_room_to_start(real, was_cut_off ? db : nullptr).value_or("");
    }
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
    if (*looked) FileFindings(*report).add(real, std::move(**looked), file_todo::log);
    return {};
  });
  if (!done) return std::unexpected(std::move(done.error()));
  return report;
}

}  // namespace idem::sqlite
