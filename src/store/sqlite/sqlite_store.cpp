#include "store/sqlite/sqlite_store.hpp"

#include "store/embedded/ledger_store.hpp"
#include "store/embedded/running_rows.hpp"
#include "store/sealed_store.hpp"
#include "store/sqlite/internal_statements.hpp"
#include "store/sqlite/log_lock.hpp"
#include "store/sqlite/meta.hpp"
#include "store/sqlite/open_database.hpp"
#include "store/sqlite/running_table.hpp"
#include "store/sqlite/slot_table.hpp"
#include "store/sqlite/transaction.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>
#include <idem/sqlite.hpp>
#include <idem/store_wait.hpp>

#include <exception>

namespace idem {
namespace {

using sqlite::Statement;

/// The open database file. Only the table's statements write between begin() and commit().
class FileMedium final : public embedded::Medium {
 public:
  FileMedium(sqlite::Connection connection, sqlite::OpenFile file)
      : connection_(std::move(connection)), file_(std::move(file)) {
    sqlite3_wal_hook(db(), &FileMedium::note_wal_pages, this);
    sqlite3_create_function_v2(db(), "idem_now", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, this,
                               &FileMedium::idem_now, nullptr, nullptr, nullptr);
    const auto lock = sqlite::LogLock::for_writing_back(file_.log());
    says_open_ = lock && is_written_back(SQLITE_CHECKPOINT_PASSIVE);  // Else after a commit.
  }

  void begin(StoreTime now) override {
    begin_.run();
    is_counted_ = false;
    changes_before_ = sqlite3_total_changes64(db());
    now_ = now;
  }

  bool has_written() const override { return sqlite3_total_changes64(db()) != changes_before_; }

  void commit() override {
    const bool is_due = begins_log_ || is_write_back_due();
    if (is_due && has_written() && !is_counted_) count_log();
    commit_.run();
  }

  void put_highest_fence(Fence fence) override { meta_.put_fence_high_water(fence); }
  void put_clock_mark(const ClockMark& mark) override { meta_.put_clock_mark(mark); }
  void put_closed() override {
    meta_.put_open(false);
    count_log();
  }

  void run(StoreTask& task, const Step& step) override {
    dynamic_cast<sqlite::ServiceTask&>(task).run(service_sql_, step);
  }

  /// If only the log is gone, its content goes into the file at once.
  std::string what_is_lost() override {
    std::string lost = file_.what_is_wrong();
    const bool is_lost = !lost.empty();
    if (is_lost == has_saved_log_) return lost;
    has_saved_log_ = is_lost;
    meta_.put_saved_log(is_lost);
    count_log();
    if (is_lost) checkpoint(SQLITE_CHECKPOINT_PASSIVE);
    return lost;
  }

  /// Checkpoints once the log has grown enough; only this thread ever does (the WAL-reset bug of
  /// SQLite 3.40 needs two). Another process that reads the file puts it off for a while.
  ///
  /// Most often the commit that found the log large enough has counted it: one for the number alone
  /// costs a sync. It takes one where reads alone follow, and where a service makes tables, which
  /// SQLite does not count as changes.
  void tidy() override {
    if (!is_write_back_due()) return;
    const bool may_wait = says_open_ && wal_pages_ <= 2 * limits::sqlite_wal_pages_max;
    if (!is_counted_ && may_wait) return;
    const auto lock = sqlite::LogLock::for_writing_back(file_.log());
    if (!lock && wal_pages_ <= sqlite::wal_pages_while_read_max) return;
    says_open_ = true;
    if (!is_counted_) count_log();
    checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  }

  void close() override { checkpoint(SQLITE_CHECKPOINT_TRUNCATE); }

 private:
  sqlite3* db() const { return connection_.get(); }

  static int note_wal_pages(void* self, sqlite3*, const char*, int pages) {
    static_cast<FileMedium*>(self)->wal_pages_ = pages;
    return SQLITE_OK;
  }

  /// The SQL function idem_now(): the batch's time.
  static void idem_now(sqlite3_context* context, int, sqlite3_value**) {
    const auto* const self = static_cast<const FileMedium*>(sqlite3_user_data(context));
    sqlite3_result_int64(context, self->now_.time_since_epoch().count());
  }

  bool is_write_back_due() const {
    return !says_open_ || wal_pages_ > limits::sqlite_wal_pages_max;
  }

  /// Once in a commit: a log begins one after the number that the file has.
  void count_log() {
    begins_log_ ? meta_.begin_log() : meta_.count_log();
    begins_log_ = false;
    is_counted_ = true;
  }

  bool is_written_back(int mode) {
    int pages = 0;
    int written = 0;
    if (sqlite3_wal_checkpoint_v2(db(), "main", mode, &pages, &written) != SQLITE_OK) return false;
    begins_log_ = pages == written;
    return true;
  }
  void checkpoint(int mode) {
    if (!is_written_back(mode)) sqlite::fail_closed(db(), "checkpoint");
    wal_pages_ = 0;
  }

  sqlite::Connection connection_;
  sqlite::ServiceSql service_sql_{db()};
  sqlite::Meta meta_{db()};
  Statement begin_{db(), "BEGIN"};
  Statement commit_{db(), "COMMIT"};
  StoreTime now_{};
  std::int64_t changes_before_ = 0;
  int wal_pages_ = 0;
  bool is_counted_ = false;  ///< The open or last transaction has counted the log.
  bool begins_log_ = false;  ///< All of the log is in the file, and SQLite begins it anew.
  /// The file itself says that it is open: the log of a store that was not closed must be there,
  /// and a start can tell that it is gone.
  bool says_open_ = false;
  sqlite::OpenFile file_;
  bool has_saved_log_ = false;
};

embedded::LedgerParts parts_of(sqlite::OpenedDatabase opened) {
  sqlite3* const db = opened.connection.get();
  using Found = embedded::LedgerParts::Found;
  Found found = opened.was_cut_off ? Found::cut_off : Found::closed;
  if (opened.is_restored) found = Found::restored;
  const Fence noted = sqlite::Meta(db).fence_high_water();
  return {
      .identity = std::move(opened.identity),
      .naming = std::move(opened.naming),
      .clock = std::move(opened.clock),
      .medium = std::make_unique<FileMedium>(std::move(opened.connection), std::move(opened.file)),
      .table = embedded::keep_running_rows(std::make_unique<sqlite::RunningTable>(db),
                                           sqlite::make_slot_table(db, std::move(opened.index))),
      .highest_fence = opened.highest_fence,
      .noted_fence = noted,
      .found = found};
}

class SqliteStore final : public embedded::LedgerStore, private Transactions {
 public:
  using LedgerStore::LedgerStore;
  ~SqliteStore() override { close(); }

  Transactions* transactions() noexcept override { return this; }

  TransactionEnd run(InTransaction what) override {
    sqlite::TransactionTask task(std::move(what));
    if (!run_and_wait(task)) {
      return {.how = TransactionEnd::How::unavailable, .why = std::string(why_not_to_wait())};
    }
    if (task.thrown) std::rethrow_exception(task.thrown);
    return std::move(task.end);
  }

  std::expected<SqlRows, std::string> run(std::string_view sql,
                                          std::span<const SqlValue> values) override {
    return ask_one(sqlite::StatementTask::Whose::service, sql, values);
  }

 protected:
  std::expected<SqlRows, std::string> run_internal(InternalStatement which,
                                                   std::span<const SqlValue> values) override {
    return ask_one(sqlite::StatementTask::Whose::ours, sqlite::text_of(which), values);
  }

 private:
  std::expected<SqlRows, std::string> ask_one(sqlite::StatementTask::Whose whose,
                                              std::string_view sql,
                                              std::span<const SqlValue> values) {
    sqlite::StatementTask task(whose, sql, values);
    if (!run_and_wait(task)) return std::unexpected(std::string(why_not_to_wait()));
    return std::move(task.result);
  }
};

}  // namespace

std::expected<std::unique_ptr<Store>, StoreError> open_sqlite(const std::string& path,
                                                              const IdentitySettings& settings,
                                                              const SqliteOptions& options) {
  auto opened = sqlite::open_database(path, settings, options);
  if (!opened) return std::unexpected(std::move(opened.error()));
  return std::make_unique<SqliteStore>(parts_of(std::move(*opened)));
}

inline namespace v0_1 {

std::expected<std::unique_ptr<Store>, std::string> open_sqlite_on(sqlite3* connection,
                                                                  const IdentitySettings& identity,
                                                                  const OpenOptions& options) {
  IDEM_ASSERT(connection != nullptr);
  const SqliteOptions how{.migrate = options.migrate,
                          .which = options.which,
                          .opened = options.opened,
                          .warn = options.warn};
  auto opened = sqlite::open_database_on(connection, identity, how);
  if (!opened) return std::unexpected(std::move(opened.error().detail));
  return make_sealed(std::make_unique<SqliteStore>(parts_of(std::move(*opened))),
                     options.encryption);
}

}  // namespace v0_1

}  // namespace idem
