#include "store/sqlite/sqlite_store.hpp"

#include "core/record/no_waiting.hpp"
#include "core/transitions/store_steps.hpp"
#include "store/call_queue.hpp"
#include "store/change_notifier.hpp"
#include "store/embedded/running_rows.hpp"
#include "store/sealed_store.hpp"
#include "store/sqlite/internal_statements.hpp"
#include "store/sqlite/log_lock.hpp"
#include "store/sqlite/meta.hpp"
#include "store/sqlite/open_database.hpp"
#include "store/sqlite/running_table.hpp"
#include "store/sqlite/slot_table.hpp"
#include "store/sqlite/transaction.hpp"
#include "store/verb_traits.hpp"

#include <idem/assert.hpp>
#include <idem/crash_point.hpp>
#include <idem/limits.hpp>
#include <idem/sqlite.hpp>
#include <idem/store_wait.hpp>
#include <idem/worker_limits.hpp>

#include <pthread.h>

#include <algorithm>
#include <deque>
#include <future>
#include <iterator>
#include <thread>

namespace idem {
namespace {

using sqlite::Statement;

/// The open database and the objects that work on it; one thread at a time.
class Ledger {
 public:
  explicit Ledger(sqlite::OpenedDatabase opened)
      : connection_(std::move(opened.connection)),
        naming_(std::move(opened.naming)),
        clock_(std::move(opened.clock)),
        table_(embedded::keep_running_rows(std::make_unique<sqlite::RunningTable>(db()),
                                           sqlite::make_slot_table(db(), std::move(opened.index)))),
        fence_high_water_(meta_.fence_high_water()),
        file_(std::move(opened.file)) {
    fences_.last = opened.highest_fence;
    sqlite3_wal_hook(db(), &Ledger::note_wal_pages, this);
    sqlite3_create_function_v2(db(), "idem_now", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, this,
                               &Ledger::idem_now, nullptr, nullptr, nullptr);
    if (opened.is_restored) {
      end_restored();
    } else if (opened.was_cut_off) {
      end_cut_off_attempts();
    }
  }

  void begin() {
    begin_.run();
    changes_before_ = sqlite3_total_changes64(db());
    now_ = clock_.now();
  }

  StoreResult step(StoreCall& call) {
    StoreResult result = do_step(call, context());
    if (std::holds_alternative<Sweep>(call) && result && !cut_off_.empty()) {
      auto& steps = std::get<std::vector<LifecycleStep>>(*result);
      std::ranges::move(std::exchange(cut_off_, {}), std::back_inserter(steps));
    }
    return result;
  }

  bool has_written() const { return sqlite3_total_changes64(db()) != changes_before_; }

  /// Makes the steps durable, together with the fences and the time that they used.
  void commit() {
    table_->flush();
    if (has_written()) {
      if (fences_.last > fence_high_water_) {
        fence_high_water_ = fences_.last + limits::fence_block;
        meta_.put_fence_high_water(fence_high_water_);
      }
      if (now_ - last_mark_ >= limits::store_clock_persist_interval) mark_time();
    }
    commit_.run();
  }

  /// Checkpoints once the log has grown enough; only this thread ever does (the WAL-reset bug of
  /// SQLite 3.40 needs two). Another process that reads the file puts it off for a while.
  void checkpoint_if_due() {
    if (wal_pages_ <= limits::sqlite_wal_pages_max) return;
    const auto lock = sqlite::LogLock::for_writing_back(file_.log());
    if (!lock && wal_pages_ <= sqlite::wal_pages_while_read_max) return;
    checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  }

  void close() {
    begin_.run();
    meta_.put_fence_high_water(fences_.last);  // Nothing above it was granted.
    meta_.put_open(false);
    mark_time();
    commit_.run();
    checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
  }

  /// Must come between begin() and commit().
  void run(StoreTask& task) {
    if (auto* statement = dynamic_cast<sqlite::StatementTask*>(&task)) {
      return statement->run(service_sql_);
    }
    const auto one = [this](StoreCall& call) { return step(call); };
    dynamic_cast<sqlite::TransactionTask&>(task).run(service_sql_, one);
  }

  /// Empty: the file is still at its path. Otherwise the next start may not find the latest
  /// commits. If only the log is gone, its content goes into the file at once.
  std::string what_is_lost() {
    std::string lost = file_.what_is_wrong();
    if (!lost.empty() && !has_saved_log_) checkpoint(SQLITE_CHECKPOINT_PASSIVE);
    has_saved_log_ = !lost.empty();
    return lost;
  }

  std::optional<RecordId> list_slice(const List& verb, std::vector<Record>& found) {
    return table_->list(verb, clock_.now(), limits::list_slice_rows, found);
  }

 private:
  sqlite3* db() const { return connection_.get(); }

  StepContext context() { return {*table_, fences_, tally_, now_, naming_}; }

  /// Their process is dead, as the lock was free. The first sweep reports them.
  void end_cut_off_attempts() {
    begin();
    cut_off_ = idem::end_cut_off_attempts(context());
    commit();
  }

  void end_restored() {
    begin();
    idem::end_restored_records(context());
    commit();
  }

  static int note_wal_pages(void* self, sqlite3*, const char*, int pages) {
    static_cast<Ledger*>(self)->wal_pages_ = pages;
    return SQLITE_OK;
  }

  /// The SQL function idem_now(): the batch's time.
  static void idem_now(sqlite3_context* context, int, sqlite3_value**) {
    const auto* const self = static_cast<const Ledger*>(sqlite3_user_data(context));
    sqlite3_result_int64(context, self->now_.time_since_epoch().count());
  }

  void mark_time() {
    const ClockMark mark = clock_.mark();
    meta_.put_clock_mark(mark);
    last_mark_ = mark.store;
  }

  void checkpoint(int mode) {
    if (sqlite3_wal_checkpoint_v2(db(), "main", mode, nullptr, nullptr) != SQLITE_OK) {
      sqlite::fail_closed(db(), "checkpoint");
    }
    wal_pages_ = 0;
  }

  sqlite::Connection connection_;
  Naming naming_;
  StoreClock clock_;
  sqlite::ServiceSql service_sql_{db()};
  sqlite::Meta meta_{db()};
  std::unique_ptr<RecordTable> table_;
  RecordTally tally_{*table_};
  Statement begin_{db(), "BEGIN"};
  Statement commit_{db(), "COMMIT"};
  transitions::FenceCounter fences_;
  Fence fence_high_water_;
  StoreTime now_{};
  StoreTime last_mark_{};
  std::int64_t changes_before_ = 0;
  int wal_pages_ = 0;
  sqlite::OpenFile file_;
  bool has_saved_log_ = false;
  std::vector<LifecycleStep> cut_off_;  ///< Ended at the start, and not reported yet.
};

struct Batch {
  bool reserves = false;
  bool settles = false;
};

Batch kind_of(std::span<const QueuedCall> calls) {
  Batch batch;
  for (const auto& [call, done, task] : calls) {
    const auto* const transaction = dynamic_cast<const sqlite::TransactionTask*>(task);
    batch.settles |= transaction != nullptr;
    batch.reserves |= transaction != nullptr && transaction->reserves();
    batch.reserves |= std::holds_alternative<Reserve>(call) || std::holds_alternative<Accept>(call);
    batch.settles |= traits_of(call).ends_attempt;
  }
  return batch;
}

class SqliteStore final : public Store, private Transactions {
 public:
  explicit SqliteStore(sqlite::OpenedDatabase opened)
      : identity_(opened.identity), ledger_(std::make_unique<Ledger>(std::move(opened))) {
    thread_ = std::jthread([this] { serve(); });
  }

  ~SqliteStore() override {
    queue_.close();
    thread_.join();
  }

  void call(StoreCall what, StoreCompletion done) override {
    queue_.push(std::move(what), std::move(done));
  }

  void watch(std::shared_ptr<Watcher> watcher) override { changes_.watch(std::move(watcher)); }

  const Identity& identity() const noexcept override { return identity_; }

  std::size_t lifecycle_slice() const noexcept override { return limits::lifecycle_slice_embedded; }

  std::optional<std::uint64_t> asked() const noexcept override { return queue_.asked(); }

  Transactions* transactions() noexcept override { return this; }

  TransactionEnd run(InTransaction what) override {
    sqlite::TransactionTask task(std::move(what));
    if (!wait_for(task)) {
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
    if (!wait_for(task)) return std::unexpected(std::string(why_not_to_wait()));
    return std::move(task.result);
  }

  /// A listing may read the whole table, so it goes on in slices between the batches.
  struct Listing {
    List verb;
    StoreCompletion done;
    std::vector<Record> found;
  };

  /// False: the caller's thread would wait for itself.
  bool wait_for(StoreTask& task) {
    if (!why_not_to_wait().empty()) return false;
    const auto committed = std::make_shared<std::promise<void>>();
    auto waiting = committed->get_future();
    queue_.push(task, [committed](const StoreResult&) { committed->set_value(); });
    waiting.wait();
    return true;
  }

  void serve() {
    ::pthread_setname_np(::pthread_self(), "idem-store");
    const NoWaiting own_thread(is_store_thread);
    for (;;) {
      auto batch = queue_.take(listings_.empty());
      for (auto& done : batch.turned_away) done_with(done, queue_is_full());
      if (!batch.calls.empty()) run_batch(batch.calls);
      if (!listings_.empty()) go_on_listing();
      if (batch.last && listings_.empty()) break;
    }
    ledger_->close();
    ledger_.reset();
  }

  void run_batch(std::span<QueuedCall> calls) {
    if (!lost_.empty()) lost_ = ledger_->what_is_lost();
    if (!lost_.empty()) return refuse(calls);
    const Batch kind = kind_of(calls);
    results_.clear();
    ledger_->begin();
    for (auto& queued : calls) {
      if (queued.task != nullptr) {
        ledger_->run(*queued.task);
        results_.emplace_back();
      } else if (auto* list = std::get_if<List>(&queued.call)) {
        listings_.push_back({std::move(*list), std::move(queued.done), {}});
        queued.done = nullptr;
        results_.emplace_back();
      } else {
        results_.push_back(ledger_->step(queued.call));
      }
    }
    if (kind.reserves) crash_point(CrashPoint::reserve_before_commit);
    if (kind.settles) crash_point(CrashPoint::settle_before_commit);
    ledger_->commit();
    if (kind.reserves) crash_point(CrashPoint::reserve_after_commit);
    if (kind.settles) crash_point(CrashPoint::settle_after_commit);
    lost_ = ledger_->what_is_lost();
    if (!lost_.empty()) lose(calls);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i].done) continue;
      notify(calls[i], results_[i]);
      done_with(calls[i].done, std::move(results_[i]));
    }
    // After the answers, so that only later calls wait for it.
    ledger_->checkpoint_if_due();
  }

  /// Nothing may begin in a file that no start will find (P5).
  void refuse(std::span<QueuedCall> calls) {
    for (QueuedCall& queued : calls) {
      if (auto* const task = dynamic_cast<sqlite::FileTask*>(queued.task)) task->refuse(lost_);
      if (queued.done) done_with(queued.done, unavailable());
    }
  }

  /// The commit is in a file that was moved away and may or may not come back.
  void lose(std::span<QueuedCall> calls) {
    const auto code =
        ledger_->has_written() ? StoreError::Code::in_doubt : StoreError::Code::unavailable;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (auto* const task = dynamic_cast<sqlite::FileTask*>(calls[i].task)) task->lose(lost_);
      results_[i] = std::unexpected(StoreError{code, lost_});
    }
  }

  StoreResult unavailable() const {
    return std::unexpected(StoreError{StoreError::Code::unavailable, lost_});
  }

  void notify(const QueuedCall& queued, const StoreResult& result) const noexcept {
    if (queued.task == nullptr) return changes_.notify(queued.call, result);
    const auto* const transaction = dynamic_cast<const sqlite::TransactionTask*>(queued.task);
    if (transaction != nullptr && transaction->changed_by) {
      changes_.notify(transaction->changed_by->first, transaction->changed_by->second);
    }
  }

  void go_on_listing() {
    Listing& listing = listings_.front();
    const auto rest = ledger_->list_slice(listing.verb, listing.found);
    if (rest) {
      listing.verb.after = rest;
      return;
    }
    Listing finished = std::move(listing);
    listings_.pop_front();
    if (!lost_.empty()) return done_with(finished.done, unavailable());
    done_with(finished.done, std::move(finished.found));
  }

  static void done_with(StoreCompletion& done, StoreResult result) {
    done(std::move(result));
    done = nullptr;
  }

  Identity identity_;
  CallQueue queue_;
  ChangeNotifier changes_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<StoreResult> results_;
  std::deque<Listing> listings_;
  std::string lost_;  ///< Why no commit is durable now; empty: commits are.
  std::jthread thread_;
};

}  // namespace

std::expected<std::unique_ptr<Store>, StoreError> open_sqlite(const std::string& path,
                                                              const IdentitySettings& settings,
                                                              const SqliteOptions& options) {
  auto opened = sqlite::open_database(path, settings, options);
  if (!opened) return std::unexpected(std::move(opened.error()));
  return std::make_unique<SqliteStore>(std::move(*opened));
}

inline namespace v0_1 {

std::expected<std::unique_ptr<Store>, std::string> open_sqlite_on(sqlite3* connection,
                                                                  const IdentitySettings& identity,
                                                                  const OpenOptions& options) {
  IDEM_ASSERT(connection != nullptr);
  const SqliteOptions how{
      .migrate = options.migrate, .which = options.which, .opened = options.opened};
  auto opened = sqlite::open_database_on(connection, identity, how);
  if (!opened) return std::unexpected(std::move(opened.error().detail));
  return make_sealed(std::make_unique<SqliteStore>(std::move(*opened)), options.encryption);
}

}  // namespace v0_1

}  // namespace idem
