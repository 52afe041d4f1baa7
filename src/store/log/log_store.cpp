#include "store/log/log_store.hpp"

#include "core/record/no_waiting.hpp"
#include "core/transitions/store_steps.hpp"
#include "store/call_queue.hpp"
#include "store/change_notifier.hpp"
#include "store/embedded/running_rows.hpp"
#include "store/log/meta.hpp"
#include "store/log/open_store.hpp"
#include "store/verb_traits.hpp"

#include <idem/crash_point.hpp>
#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <pthread.h>

#include <deque>
#include <iterator>
#include <thread>

namespace idem {
namespace {

/// The open database and the objects that work on it; one thread at a time.
class Ledger {
 public:
  explicit Ledger(segments::OpenedStoreParts opened)
      : db_(std::move(opened.db)),
        naming_(std::move(opened.naming)),
        clock_(std::move(opened.clock)),
        table_(embedded::keep_running_rows(std::move(opened.running), std::move(opened.slots))),
        fence_high_water_(opened.highest_fence) {
    fences_.last = opened.highest_fence;
    if (opened.was_cut_off) end_cut_off_attempts();
  }

  void begin() { now_ = clock_.now(); }

  StoreResult step(StoreCall& call) {
    StoreResult result = do_step(call, context());
    if (std::holds_alternative<Sweep>(call) && result && !cut_off_.empty()) {
      auto& steps = std::get<std::vector<LifecycleStep>>(*result);
      std::ranges::move(std::exchange(cut_off_, {}), std::back_inserter(steps));
    }
    return result;
  }

  /// Makes the steps durable, together with the fences and the time that they used.
  void commit() {
    table_->flush();
    if (db_->has_written()) {
      if (fences_.last > fence_high_water_) {
        fence_high_water_ = fences_.last + limits::fence_block;
        meta_.put_number(segments::meta_fences, fence_high_water_);
      }
      if (now_ - last_mark_ >= limits::store_clock_persist_interval) mark_time();
    }
    db_->commit();
  }

  void close() {
    begin();
    meta_.put_number(segments::meta_fences, fences_.last);  // Nothing above it was granted.
    meta_.put_number(segments::meta_open, 0);
    mark_time();
    db_->commit();
  }

  std::optional<RecordId> list_slice(const List& verb, std::vector<Record>& found) {
    return table_->list(verb, clock_.now(), limits::list_slice_rows, found);
  }

 private:
  StepContext context() { return {*table_, fences_, tally_, now_, naming_}; }

  /// Their process is dead, as the lock was free. The first sweep reports them.
  void end_cut_off_attempts() {
    begin();
    cut_off_ = idem::end_cut_off_attempts(context());
    commit();
  }

  void mark_time() {
    const ClockMark mark = clock_.mark();
    meta_.put_clock_mark(mark);
    last_mark_ = mark.store;
  }

  std::unique_ptr<segments::Database> db_;
  Naming naming_;
  StoreClock clock_;
  segments::Meta meta_{*db_};
  std::unique_ptr<RecordTable> table_;
  RecordTally tally_{*table_};
  transitions::FenceCounter fences_;
  Fence fence_high_water_;
  StoreTime now_{};
  StoreTime last_mark_{};
  std::vector<LifecycleStep> cut_off_;  ///< Ended at the start, and not reported yet.
};

struct Batch {
  bool reserves = false;
  bool settles = false;
};

Batch kind_of(std::span<const QueuedCall> calls) {
  Batch batch;
  for (const QueuedCall& queued : calls) {
    batch.reserves |=
        std::holds_alternative<Reserve>(queued.call) || std::holds_alternative<Accept>(queued.call);
    batch.settles |= traits_of(queued.call).ends_attempt;
  }
  return batch;
}

class LogStore final : public Store {
 public:
  explicit LogStore(segments::OpenedStoreParts opened)
      : identity_(opened.identity), ledger_(std::make_unique<Ledger>(std::move(opened))) {
    thread_ = std::jthread([this] { serve(); });
  }

  ~LogStore() override {
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

 private:
  /// A listing may read the whole table, so it goes on in slices between the batches.
  struct Listing {
    List verb;
    StoreCompletion done;
    std::vector<Record> found;
  };

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
    const Batch kind = kind_of(calls);
    results_.clear();
    ledger_->begin();
    for (auto& queued : calls) {
      if (auto* list = std::get_if<List>(&queued.call)) {
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
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i].done) continue;
      changes_.notify(calls[i].call, results_[i]);
      done_with(calls[i].done, std::move(results_[i]));
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
  std::jthread thread_;
};

}  // namespace

std::expected<std::unique_ptr<Store>, StoreError> open_log(const std::string& path,
                                                           const IdentitySettings& settings,
                                                           const LogOptions& options) {
  auto opened = segments::open_store(path, settings, options);
  if (!opened) return std::unexpected(std::move(opened.error()));
  return std::make_unique<LogStore>(std::move(*opened));
}

}  // namespace idem
