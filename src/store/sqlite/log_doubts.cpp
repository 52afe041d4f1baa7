#include "store/sqlite/log_doubts.hpp"

#include "core/bytes/rfc3339.hpp"
#include "core/record/stored_record_codec.hpp"
#include "store/sqlite/check_file.hpp"
#include "store/sqlite/file_alone.hpp"
#include "store/sqlite/meta.hpp"
#include "store/sqlite/read_only_vfs.hpp"
#include "store/sqlite/running_table.hpp"
#include "store/sqlite/tolerant_rows.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

namespace idem::sqlite {
namespace {

using LogKind = LogJudgement::Kind;

constexpr std::string_view what_helps =
    "bring back a copy of both files that is whole, or make a store of what can be read: idem "
    "store recover";

/// "between TIME and TIME"; the clock of the store and that of the machine may differ.
std::string span_in_doubt(sqlite3* db, const LogJudgement& judged) {
  const auto newest = newest_moment_in(db);
  const std::string from = newest ? to_rfc3339(*newest) : "a moment that cannot be read";
  // What rewrote the file may have kept an earlier time of its last write.
  if (judged.written_at <= newest.value_or(StoreTime{})) return "after " + from;
  return fmt::format("between {} and {}", from, to_rfc3339(judged.written_at));
}

std::optional<std::int64_t> integer_in_meta(sqlite3* db, std::string_view name) {
  const std::string sql = fmt::format("SELECT value FROM idem_meta WHERE name = '{}'", name);
  TolerantRows rows(db, sql.c_str());
  if (!rows.step()) return std::nullopt;
  return rows.integer(0);
}

std::optional<std::string> text_in_meta(sqlite3* db, std::string_view name) {
  const std::string sql = fmt::format("SELECT value FROM idem_meta WHERE name = '{}'", name);
  TolerantRows rows(db, sql.c_str());
  if (!rows.step()) return std::nullopt;
  return std::string(rows.bytes(0));
}

/// A log lies beside a database from the first commit of a process to the last one, which notes
/// that the process closed it, or to one that notes that the log had gone from its path. A backup
/// never had one.
bool has_lost_its_log(const LogJudgement& judged, sqlite3* db) {
  return db != nullptr && judged.kind == LogKind::missing &&
         integer_in_meta(db, "open").value_or(0) != 0 &&
         integer_in_meta(db, Meta::saved_log_name).value_or(0) == 0 &&
         !integer_in_meta(db, copied_at_name);
}

/// A service that has tables in the file may open it by itself before each start. After a kill
/// SQLite then writes the log back and deletes it: nothing is lost, and nobody can tell.
bool has_tables_of_others(sqlite3* db) {
  TolerantRows rows(db,
                    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE "
                    "'idem\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
  return rows.step();
}

}  // namespace

std::optional<StoreTime> newest_moment_in(sqlite3* db) {
  std::optional<StoreTime> newest;
  if (db == nullptr) return newest;
  const auto see = [&](StoreTime moment) { newest = std::max(newest.value_or(moment), moment); };
  if (const auto mark = integer_in_meta(db, "clock_store_ms")) see(StoreTime(Millis(*mark)));
  TolerantRows running(db, "SELECT id, record FROM idem_running");
  while (running.step()) {
    const auto id = RunningTable::id_in(running.bytes(0));
    if (!id) continue;
    if (const auto record = decode_record(*id, running.bytes(1))) see(record->changed_at);
  }
  TolerantRows settled(db, "SELECT id, record FROM idem_slots NOT INDEXED");
  while (settled.step()) {
    RecordId id;
    if (settled.bytes(0).size() != id.bytes.size()) continue;
    settled.bytes(0).copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
    if (const auto record = decode_record(id, settled.bytes(1))) see(record->changed_at);
  }
  return newest;
}

std::optional<std::string> why_log_refuses(const std::string& log, const LogJudgement& judged,
                                           sqlite3* db) {
  if (has_lost_its_log(judged, db)) {
    if (has_tables_of_others(db)) return std::nullopt;
    return fmt::format(
        "its log {} is not there or empty, though its last process did not close it. What was "
        "confirmed {} is lost, and those keys would run again, so it is not opened and nothing was "
        "changed: {}. If "
        "another program, such as sqlite3, has opened it since, that wrote the log back, and a "
        "recovered store lacks nothing",
        log, span_in_doubt(db, judged), what_helps);
  }
  if (judged.kind != LogKind::damaged) return std::nullopt;
  const std::string where =
      judged.bad_at == 0
          ? std::string("its header is not what was written, so SQLite would drop all of it")
          : fmt::format(
                "the frame at byte {} is not what was written, and SQLite would drop it "
                "with the {} commits from there on",
                judged.bad_at, judged.dropped);
  return fmt::format(
      "its log {} is damaged: {}. What was confirmed {} is in doubt, and those keys would run "
      "again, so it is not opened and nothing was changed: {}",
      log, where, span_in_doubt(db, judged), what_helps);
}

std::optional<std::string> why_log_is_of_another(const std::string& log, const LogJudgement& judged,
                                                 sqlite3* db) {
  if (judged.commits == 0 || db == nullptr) return std::nullopt;
  const Connection file = open_without_log(db);
  // The file of a new store may have nothing yet, and that of one that was killed while the log
  // went into it may not fit together: then nothing is known, and the log has it all.
  const auto in_file = file ? integer_in_meta(file.get(), Meta::log_number_name) : std::nullopt;
  if (!in_file) return std::nullopt;
  // Pages of two moments may be unreadable together, and then tell nothing.
  const auto store_id = text_in_meta(db, "store_id");
  const bool is_of_other = store_id && store_id != text_in_meta(file.get(), "store_id");
  const bool is_older = integer_in_meta(db, Meta::log_number_name).value_or(0) < *in_file;
  const bool is_later = integer_in_meta(db, Meta::log_began_name).value_or(0) > *in_file + 1;
  if (is_later && !is_of_other && !is_older) {
    return fmt::format(
        "is older than its log {}: what was confirmed between them is missing, and those keys "
        "would run again, so it is not opened and nothing was changed. Bring back the database of "
        "the same moment",
        log);
  }
  if (!is_of_other && !is_older) return std::nullopt;
  const bool is_closed = integer_in_meta(file.get(), "open").value_or(1) == 0;
  return fmt::format(
      "its log {} is {}, and SQLite would put its pages over newer ones: what was confirmed since "
      "would be lost, and those keys would run again, so it is not opened and nothing was changed. "
      "{}",
      log, is_of_other ? "another store's" : "older than the database",
      is_closed
          ? "The last process closed the database, which needs no log: move the log away"
          : "Bring back the log of the same moment; if there is none, move this one away, and "
            "keep what the database has (idem store recover)");
}

std::optional<std::string> why_log_is_of_another(const std::string& path,
                                                 const LogJudgement& judged) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                                   read_only_vfs());
  const Connection db(raw);
  if (code != SQLITE_OK) return std::nullopt;
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  (void)text_value(raw, "PRAGMA locking_mode=EXCLUSIVE");
  return why_log_is_of_another(path + "-wal", judged, raw);
}

std::optional<std::string> doubt_of_log(const std::string& log, const LogJudgement& judged,
                                        sqlite3* db) {
  if (has_lost_its_log(judged, db)) {
    return fmt::format(
        "its log {} is not there or empty, though its last process did not close it. Unless "
        "another program has opened the file since and so wrote the log back, what was confirmed "
        "{} is lost: its "
        "keys would run again",
        log, span_in_doubt(db, judged));
  }
  if (judged.kind != LogKind::torn) return std::nullopt;
  return fmt::format(
      "its log {} ends at byte {} of {} in a commit that is not whole, which is dropped. A power "
      "cut or a kill in the middle of a write leaves that of a commit that was never confirmed. If "
      "there was neither, the log is damaged, and what was confirmed {} may be lost: its keys "
      "would run again",
      log, judged.end, judged.bytes, span_in_doubt(db, judged));
}

std::optional<std::string> why_log_has_no_database(const std::string& path) {
  const std::string real = real_path(path);
  const std::string log = real + "-wal";
  const auto judged = judge_log(log);
  if (!judged) return judged.error();
  if (judged->commits == 0 && judged->kind != LogKind::damaged) return std::nullopt;
  // Looked at in this order: a process that makes a store makes its log last.
  struct stat state{};
  const bool is_there = ::stat(real.c_str(), &state) == 0;
  if (is_there && state.st_size > 0) return std::nullopt;
  return fmt::format(
      "{}, but its log {} has {} commits, which SQLite would delete: bring the file back. If you "
      "want a new store that knows no earlier key, move the log away",
      is_there ? "it is empty" : "it is not there", log, judged->commits);
}

}  // namespace idem::sqlite
