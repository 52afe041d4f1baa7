#include "store/sqlite/open_database.hpp"

#include "core/naming/copied_identity.hpp"
#include "core/record/which_store.hpp"
#include "core/transitions/transitions.hpp"
#include "store/embedded/room_on_disk.hpp"
#include "store/sqlite/buffered_log.hpp"
#include "store/sqlite/check_file.hpp"
#include "store/sqlite/failure.hpp"
#include "store/sqlite/file_judgement.hpp"
#include "store/sqlite/identity.hpp"
#include "store/sqlite/log_doubts.hpp"
#include "store/sqlite/meta.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/sqlite/own_connection.hpp"
#include "store/sqlite/restore_file.hpp"
#include "store/sqlite/route_names.hpp"
#include "store/sqlite/tolerant_rows.hpp"

#include <idem/limits.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <mutex>

namespace idem::sqlite {
namespace {

template <class T>
using Opening = std::expected<T, StoreError>;

std::unexpected<StoreError> open_refused(std::string detail) {
  return std::unexpected(StoreError{StoreError::Code::refused, std::move(detail)});
}

/// A start writes about a quarter of this to a new store, and to its log by the first steps.
constexpr std::uint64_t start_bytes = 512UL * 1024;
/// The most that a start writes to end one attempt of a killed process: a page of its row, and one
/// of each table and index to which the row moves.
constexpr std::uint64_t cut_off_attempt_bytes = 16UL * 1024;

/// The file may be anything, so a failure to open it is an error and not an abort.
class Opener {
 public:
  Opener(std::string path, const SqliteOptions& options)
      : path_(std::move(path)), options_(options) {}

  Opening<Connection> open();
  Opening<Connection> adopt(sqlite3* db);
  /// The schema version that the file had; 0: it is new.
  std::int64_t version_before() const noexcept { return version_; }
  /// The next commit is the first of a log.
  bool begins_log() const noexcept { return judged_.commits == 0; }

 private:
  Opening<void> prepare_file() const;
  std::optional<std::string> why_not_made() const;
  Opening<void> connect();
  Opening<void> take_lock();
  Opening<void> check_log();
  Opening<void> settle_log();
  Opening<void> check_owner();
  Opening<void> configure();
  Opening<void> migrate();

  Opening<void> run(const std::string& sql);
  Opening<std::string> ask(const std::string& sql);
  Opening<std::int64_t> ask_number(const std::string& sql);
  std::unexpected<StoreError> failure() const;
  std::unexpected<StoreError> upgrade_failure(std::int64_t latest) const;

  std::string path_;
  const SqliteOptions& options_;
  Connection connection_;
  std::string log_;
  LogJudgement judged_;
  bool had_log_ = true;  ///< Before SQLite opened the file.
  std::int64_t version_ = 0;
  bool empty_ = false;
  bool beside_others_ = false;  ///< A database with tables but none of a store counts as empty.
};

Opening<Connection> Opener::open() {
  auto done = prepare_file();
  if (done) done = connect();
  if (done) done = take_lock();
  if (done) done = check_log();
  if (done) done = check_owner();
  if (done) done = settle_log();
  if (done) done = configure();
  if (done) done = migrate();
  if (!done) return std::unexpected(std::move(done.error()));
  return std::move(connection_);
}

/// For a connection that is set up. After an error it is the caller's, without a transaction.
Opening<Connection> Opener::adopt(sqlite3* db) {
  connection_.reset(db);
  beside_others_ = true;
  auto done = check_owner();
  if (done) done = migrate();
  // By now it has written, and so holds the lock that keeps others out.
  if (done && is_open_to_others(db)) {
    done = open_refused(fmt::format("{}: others can open it in spite of its lock", path_));
  }
  // The commit that writes first is still to come.
  if (done) done = check_log();
  if (done) done = settle_log();
  Connection connection = std::move(connection_);
  if (done) return connection;
  (void)connection.release();
  return std::unexpected(std::move(done.error()));
}

std::optional<std::string> Opener::why_not_made() const {
  return why_not(options_.which, std::nullopt);
}

/// Makes a missing file itself: it holds the secret, and SQLite would make it readable for all
/// that the umask lets.
Opening<void> Opener::prepare_file() const {
  if (const auto why = interrupted_restore_at(path_)) return open_refused(path_ + ": " + *why);
  if (const auto why = why_dangling(path_)) return open_refused(path_ + ": " + *why);
  if (auto why = why_no_access(real_path(path_), FileUse::writing)) {
    return open_refused(std::move(*why));
  }
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code code;
  if (!std::filesystem::is_directory(folder, code)) {
    return open_refused(
        fmt::format("{}: the directory {} does not exist; make it, or write another path", path_,
                    folder.string()));
  }
  if (const auto why = why_log_has_no_database(path_)) return open_refused(path_ + ": " + *why);
  if (const auto why = why_not_made(); why && !std::filesystem::exists(path_, code)) {
    return open_refused(path_ + ": " + *why);
  }
  if (const auto why = why_no_room_to_start(path_, nullptr))
    return open_refused(path_ + ": " + *why);
  const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) {
    ::close(file);
  } else if (errno != EEXIST) {
    return open_refused(file_failure(path_, "cannot be created", errno));
  }
  return {};
}

Opening<void> Opener::connect() {
  had_log_ = ::access((real_path(path_) + "-wal").c_str(), F_OK) == 0;
  sqlite3* db = nullptr;
  const std::string vfs = buffered_log_vfs(options_.vfs);
  const int code = sqlite3_open_v2(
      path_.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      vfs.c_str());
  connection_.reset(db);
  if (code != SQLITE_OK) return failure();
  if (sqlite3_db_readonly(db, "main") == 1) {
    const int error = ::access(path_.c_str(), W_OK) != 0 ? errno : EACCES;
    return open_refused(file_failure(path_, "cannot be written", error));
  }
  // A file that is refused keeps its log: the last close would write it back and delete it.
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return run("PRAGMA locking_mode=EXCLUSIVE");
}

/// SQLite locks the file at its first read, for as long as it is open, and writes nothing then. Any
/// other failure of the read comes after what is known of the log.
Opening<void> Opener::take_lock() {
  sqlite3* db = connection_.get();
  (void)text_value(db, "SELECT count(*) FROM sqlite_schema");
  const int code = sqlite3_errcode(db) & 0xff;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) return failure();
  return {};
}

/// Under the lock, because a writer's log may look damaged for a moment.
Opening<void> Opener::check_log() {
  sqlite3* db = connection_.get();
  log_ = std::string(sqlite3_db_filename(db, "main")) + "-wal";
  auto judged = judge_log(log_);
  if (!judged) return open_refused(judged.error());
  judged_ = *judged;
  const bool is_copy =
      options_.restored || (options_.which.copied && options_.which.copied->is_snapshot);
  if (is_copy && judged_.kind == LogJudgement::Kind::missing) return {};  // It never had one.
  auto why = why_log_refuses(log_, judged_, db);
  if (!why) why = why_log_is_of_another(log_, judged_, db);
  if (!why) return {};
  // SQLite makes one at its first read.
  if (!had_log_ && judged_.bytes == 0) ::unlink(log_.c_str());
  return open_refused(path_ + ": " + *why);
  return {};
}

/// Before the first write: SQLite writes on at the end of the last commit that it takes.
Opening<void> Opener::settle_log() {
  if (const auto doubt = doubt_of_log(log_, judged_, connection_.get()); doubt && options_.warn) {
    options_.warn(path_ + ": " + *doubt);
  }
  if (auto done = sqlite::settle_log(log_, judged_); !done) return open_refused(done.error());
  return {};
}

/// Before the first write: checks that the file is a database, Idem's, and not in use.
Opening<void> Opener::check_owner() {
  const auto tables = ask_number("SELECT count(*) FROM sqlite_schema");
  if (!tables) return std::unexpected(tables.error());
  // The first read has made SQLite look at its header; connect() has seen that the file can be
  // written.
  if (sqlite3_db_readonly(connection_.get(), "main") == 1) {
    const auto why = why_only_readable(connection_.get());
    return open_refused(path_ + ": " + corrupt_because(why.value_or("its header is damaged")));
  }
  const auto owner = ask_number("PRAGMA application_id");
  const auto version = ask_number("PRAGMA user_version");
  if (!owner) return std::unexpected(owner.error());
  if (!version) return std::unexpected(version.error());
  version_ = *version;
  empty_ = (*tables == 0 || beside_others_) && *owner == 0 && version_ == 0;
  if (const auto why = why_not_made(); why && empty_) return open_refused(path_ + ": " + *why);
  if (empty_ || *owner == application_id) return {};
  if (*owner == application_id_before_release) {
    return open_refused(
        fmt::format("{}: was made before the first release, whose files cannot be upgraded: name a "
                    "new file",
                    path_));
  }
  if (*owner == 0 && beside_others_) {
    return open_refused(
        fmt::format("{}: its user_version is {}, where the store would keep its own: set it to 0",
                    path_, version_));
  }
  return open_refused(fmt::format("{}: is another program's database (application_id {:#x})", path_,
                                  static_cast<std::uint32_t>(*owner)));
}

Opening<void> Opener::configure() {
  // Each commit syncs the log; FULL, because NORMAL may lose the last commits.
  const auto mode = ask("PRAGMA journal_mode=WAL");
  if (!mode) return std::unexpected(mode.error());
  if (*mode != "wal")
    return open_refused(
        fmt::format("{}: cannot keep a write-ahead log here: its file system does not let SQLite "
                    "do that; put the store on a disk of this machine",
                    path_));
  return run(
      fmt::format("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
                  "PRAGMA cache_size=-{}; PRAGMA temp_store=MEMORY;"
                  "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
                  "PRAGMA foreign_keys=ON",
                  limits::sqlite_cache_bytes / 1024));
}

Opening<void> Opener::migrate() {
  const auto latest = migrations().back().version;
  if (version_ > latest) {
    return open_refused(
        fmt::format("{}: has schema version {}, and this program knows versions up to {}", path_,
                    version_, latest));
  }
  if (version_ < latest && !empty_ && !options_.migrate) {
    return open_refused(
        fmt::format("{}: has schema version {}, and this program needs {}: {} to upgrade it", path_,
                    version_, latest, needs_migration));
  }
  if (version_ != 0) {
    if (auto why = why_definitions_differ(connection_.get(), version_)) {
      return open_refused(path_ + ": " + corrupt_because(std::move(*why)));
    }
  }
  // Without spills, all writes reach the file at the commit, where a full disk is still an error.
  std::string script = "PRAGMA cache_spill=OFF; BEGIN IMMEDIATE;";
  for (const Migration& migration : migrations()) {
    if (migration.version > version_) script += migration.sql;
  }
  script +=
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", application_id, latest);
  // Left open: the identity of a new store is made in the same transaction.
  if (!run(script)) return upgrade_failure(latest);
  return {};
}

Opening<void> Opener::run(const std::string& sql) {
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure();
  }
  return {};
}

Opening<std::string> Opener::ask(const std::string& sql) {
  auto answer = text_value(connection_.get(), sql.c_str());
  if (!answer) return failure();
  return std::move(*answer);
}

Opening<std::int64_t> Opener::ask_number(const std::string& sql) {
  const auto text = ask(sql);
  if (!text) return std::unexpected(text.error());
  return std::strtoll(text->c_str(), nullptr, 10);
}

/// When a column gets another name, SQLite checks every view and trigger of the file, also those
/// that a service has beside the store: a broken one stops the upgrade.
std::unexpected<StoreError> Opener::upgrade_failure(std::int64_t latest) const {
  sqlite3* db = connection_.get();
  if (version_ == 0 || sqlite3_errcode(db) != SQLITE_ERROR) return failure();
  return open_refused(
      fmt::format("{}: cannot be upgraded from schema version {} to {}: {}. SQLite checks every "
                  "view and trigger of the file for this: repair or drop the one that it names; "
                  "the store is unchanged",
                  path_, version_, latest, sqlite3_errmsg(db)));
}

std::unexpected<StoreError> Opener::failure() const {
  auto [kind, why] = failure_of(connection_.get(), path_, FileUse::writing);
  const bool is_busy = kind == SqliteFailure::Kind::busy;
  return std::unexpected(StoreError{
      is_busy ? StoreError::Code::unavailable : StoreError::Code::refused, std::move(why)});
}

/// Idem must not repeat calls that other parties may have forgotten by now (protocol.md §16): if it
/// is unknown how much time passed, this counts all of it as over. A call that may have been in
/// flight before a restart of the machine has been over only since then.
void count_calls_as_old(sqlite3* db, const StoreClock& clock) {
  static constexpr std::array no_call_in_flight{
      "UPDATE idem_flows SET no_call_in_flight_since = ? WHERE no_call_in_flight_since IS NOT NULL",
      "UPDATE idem_outbox SET no_call_in_flight_since = ? WHERE state = 'waiting' AND "
      "no_call_in_flight_since IS NOT NULL"};
  for (const char* const sql : no_call_in_flight) {
    if (!clock.was_restarted()) break;
    Statement quiet(db, sql);
    quiet.bind(1, clock.now().time_since_epoch().count());
    quiet.run();
  }
  if (!clock.has_lost_time()) return;
  Statement(db, "UPDATE idem_flows SET point_at = 0").run();
  Statement(db, "UPDATE idem_outbox SET first_at = 0, repeat_until = 0 WHERE state <> 'delivered'")
      .run();
}

/// Of a restored backup: any call may have been made since, and its other side may have forgotten
/// it.
void count_calls_as_made(sqlite3* db, StoreTime now) {
  Statement messages(db,
                     "UPDATE idem_outbox SET ambiguous = 1, first_at = 0, repeat_until = 0,"
                     " no_call_in_flight_since = ? WHERE state <> 'delivered'");
  messages.bind(1, now.time_since_epoch().count());
  messages.run();
  Statement flows(db,
                  "UPDATE idem_flows SET point_at = 0, nothing_open = 0,"
                  " no_call_in_flight_since = ?");
  flows.bind(1, now.time_since_epoch().count());
  flows.run();
}

/// Completes the transaction that migrate() began. After an error the transaction stays open.
std::expected<OpenedDatabase, StoreError> finish(Connection& connection, const std::string& path,
                                                 std::int64_t version_before, bool begins_log,
                                                 const IdentitySettings& settings,
                                                 const SqliteOptions& options) {
  sqlite3* db = connection.get();
  // Before anything trusts the content, and before the commit: a file that is refused stays as it
  // was.
  auto all = judge_content(db, version_before);
  if (!all) {
    auto failure = last_failure(db, path, FileUse::writing);
    return open_refused(failure ? std::move(failure->why) : path + ": " + all.error());
  }
  Meta meta(db);
  if (version_before != 0 && version_before < Meta::first_version_with_checksums) {
    meta.add_checksums();
  }
  const bool is_snapshot = options.which.copied && options.which.copied->is_snapshot;
  const bool was_cut_off = meta.is_open() && !is_snapshot;
  if (was_cut_off && path.starts_with('/')) {
    if (const auto why = why_no_room_to_start(path, db)) return open_refused(path + ": " + *why);
  }
  StoreClock clock(options.host ? *options.host : this_host(), meta.clock_mark());
  auto which = settle_store_id(meta, options.which);
  if (!which) return open_refused(path + ": " + which.error());
  which->place = path;
  auto identity = options.as_recorded && !which->is_new
                      ? std::expected<Identity, std::string>()
                      : settle_identity(db, meta, settings, options.which, clock.now());
  if (!identity) return open_refused(path + ": " + identity.error());
  meta.put_clock_mark(clock.mark());
  meta.put_open(true);
  begins_log ? meta.begin_log() : meta.count_log();
  if (meta.has_saved_log()) meta.put_saved_log(false);
  count_calls_as_old(db, clock);
  if (!is_snapshot) {
    // From now on it has a log, and a log that is gone is missed.
    Statement forget(db, "DELETE FROM idem_meta WHERE name = ?1");
    forget.bind_text(1, copied_at_name);
    forget.run();
  }
  if (options.restored) {
    count_calls_as_made(db, clock.now());
    meta.put_fence_high_water(meta.fence_high_water() + transitions::restored_fence_gap);
  }
  const auto generation = options.as_recorded && !which->is_new
                              ? static_cast<std::uint64_t>(meta.integer("generation").value_or(0))
                              : identity->generation;
  if (generation == 0)
    return open_refused(path + ": its identity is damaged: it has no generation");
  Naming naming = read_naming(db, generation, settings.key_scope == "operation");
  if (settle_naming(options.which, naming)) write_naming(db, naming);
  if (version_before < Meta::first_version_with_checksums) {  // Values that it may not have had.
    meta.put_fence_high_water(meta.fence_high_water());
    meta.digest_secrets_changed();
    write_naming(db, naming);
  }
  note_definitions(db);
  if (sqlite3_exec(db, "COMMIT; PRAGMA cache_spill=ON", nullptr, nullptr, nullptr) != SQLITE_OK) {
    return open_refused(failure_of(db, path, FileUse::writing).why);
  }
  const bool has_path = path.starts_with('/');
  OpenFile file(db, has_path ? path : std::string());
  if (options.opened) options.opened(*which);
  return OpenedDatabase{
      std::move(connection), std::move(*identity),
      std::move(naming),     std::move(clock),
      std::move(all->index), std::max(meta.fence_high_water(), all->highest_fence),
      std::move(file),       was_cut_off,
      options.restored};
}

/// Saves a lock per allocation. Must come before this process first uses the library; later it
/// does nothing, which is harmless.
void stop_counting_memory() {
  static std::once_flag once;
  std::call_once(once, [] { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); });
}

}  // namespace

std::optional<std::string> why_no_room_to_start(const std::string& path, sqlite3* db) {
  std::uint64_t needed = start_bytes;
  if (db != nullptr) {
    TolerantRows running(db, "SELECT count(*) FROM idem_running");
    if (running.step()) {
      needed += static_cast<std::uint64_t>(running.integer(0)) * cut_off_attempt_bytes;
    }
  }
  return embedded::why_too_full(std::filesystem::path(path).parent_path(), needed, needed);
}

std::expected<OpenedDatabase, StoreError> open_database(const std::string& path,
                                                        const IdentitySettings& settings,
                                                        const SqliteOptions& options) {
  if (path.empty()) return open_refused("the store's path is empty");
  stop_counting_memory();
  // Absolute, because SQLite gives ":memory:" and "file:..." meanings of their own.
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  Opener opener(absolute, options);
  auto connection = opener.open();
  if (!connection) return std::unexpected(std::move(connection.error()));
  sqlite3* const db = connection->get();
  auto opened = finish(*connection, absolute, opener.version_before(), opener.begins_log(),
                       settings, options);
  if (opened) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  return opened;
}

std::expected<OpenedDatabase, StoreError> open_database_on(sqlite3* db,
                                                           const IdentitySettings& settings,
                                                           const SqliteOptions& options) {
  const char* const path = sqlite3_db_filename(db, "main");
  const std::string name = path == nullptr || *path == '\0' ? "the connection" : path;
  if (const auto why = why_refused(db)) return open_refused(name + ": " + *why);
  Opener opener(name, options);
  auto connection = opener.adopt(db);
  auto opened = connection ? finish(*connection, name, opener.version_before(), opener.begins_log(),
                                    settings, options)
                           : std::unexpected(std::move(connection.error()));
  if (!opened) {
    if (connection) (void)connection->release();
    // The caller's close would delete a log that is refused, with what can be read of it.
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    if (sqlite3_get_autocommit(db) == 0) {
      sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
    }
    return opened;
  }
  // A handler would interrupt statements of the store.
  sqlite3_progress_handler(db, 0, nullptr, nullptr);
  return opened;
}

}  // namespace idem::sqlite
