#include "store/embedded/ledger_store.hpp"

#include "core/threads/no_waiting.hpp"
#include "core/threads/turn.hpp"
#include "store/verb_traits.hpp"

#include <idem/crash_point.hpp>
#include <idem/store_wait.hpp>

#include <pthread.h>

#include <future>

namespace idem::embedded {
namespace {

/// Bytes of upkeep in one transaction, without and with calls that wait for it.
constexpr std::size_t upkeep_alone = 256UL << 10U;
constexpr std::size_t upkeep_beside = 16UL << 10U;
/// Of answers and requests in one commit; the last one may go beyond it.
constexpr std::size_t commit_bytes = 32UL << 20U;

struct Batch {
  bool reserves = false;
  bool settles = false;
};

Batch kind_of(std::span<const QueuedCall> calls) {
  Batch batch;
  for (const QueuedCall& queued : calls) {
    if (queued.task != nullptr) {
      batch.reserves |= queued.task->reserves();
      batch.settles |= queued.task->settles();
    } else {
      batch.reserves |= std::holds_alternative<Reserve>(queued.call) ||
                        std::holds_alternative<Accept>(queued.call);
      batch.settles |= traits_of(queued.call).ends_attempt;
    }
  }
  return batch;
}

/// Of what a call stores, the part that may be large.
std::size_t bytes_of(const StoreCall& call) {
  const auto of_answer = [](const auto& answer) { return answer ? answer->body.size() : 0; };
  if (const auto* complete = std::get_if<Complete>(&call)) return complete->response.body.size();
  if (const auto* accept = std::get_if<Accept>(&call)) return accept->request.size();
  if (const auto* resolve = std::get_if<Resolve>(&call)) return of_answer(resolve->response);
  if (const auto* put = std::get_if<PutRecord>(&call); put && put->record) {
    const auto& request = put->record->stored_request;
    return of_answer(put->record->response) + (request ? request->size() : 0);
  }
  if (const auto* reseal = std::get_if<Reseal>(&call)) {
    return of_answer(reseal->response) + (reseal->request ? reseal->request->size() : 0);
  }
  return 0;
}

/// The first of `calls`, as many as make one commit. A log's frame has an end, and a large commit
/// makes all others wait.
std::span<QueuedCall> one_commit_of(std::span<QueuedCall> calls) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < calls.size() && bytes < commit_bytes) {
    const QueuedCall& next = calls[count++];
    bytes += next.task != nullptr ? next.task->bytes() : bytes_of(next.call);
  }
  return calls.first(count);
}

void done_with(StoreCompletion& done, StoreResult result) {
  done(std::move(result));
  done = nullptr;
}

}  // namespace

LedgerStore::LedgerStore(LedgerParts parts)
    : identity_(parts.identity), ledger_(std::make_unique<Ledger>(std::move(parts))) {
  thread_ = std::jthread([this] { serve(); });
}

LedgerStore::~LedgerStore() { close(); }

void LedgerStore::close() {
  queue_.close();
  if (thread_.joinable()) thread_.join();
}

bool LedgerStore::run_and_wait(StoreTask& task) {
  if (!why_not_to_wait().empty()) return false;
  const auto committed = std::make_shared<std::promise<void>>();
  auto waiting = committed->get_future();
  queue_.push(task, [committed](const StoreResult&) { committed->set_value(); });
  about_to_wait();
  waiting.wait();
  return true;
}

void LedgerStore::run(std::shared_ptr<StoreTask> task, StoreCompletion done) {
  StoreTask& pushed = *task;
  queue_.push(pushed, [task = std::move(task), done = std::move(done)](StoreResult result) mutable {
    done(std::move(result));
  });
}

void LedgerStore::serve() {
  ::pthread_setname_np(::pthread_self(), "idem-store");
  const NoWaiting own_thread(is_store_thread);
  for (;;) {
    const bool has_upkeep = lost_.empty() && ledger_->has_upkeep();
    auto batch = queue_.take(listings_.empty() && !has_upkeep);
    for (auto& done : batch.turned_away) done_with(done, queue_is_full());
    note_answered(batch.turned_away.size());
    std::span<QueuedCall> calls = batch.calls;
    if (calls.empty() && has_upkeep) run_batch(calls);
    while (!calls.empty()) {
      const auto now = one_commit_of(calls);
      run_batch(now);
      calls = calls.subspan(now.size());
    }
    if (!listings_.empty()) go_on_listing();
    if (batch.last && listings_.empty()) break;
  }
  ledger_->close();
  ledger_.reset();
}

void LedgerStore::run_batch(std::span<QueuedCall> calls) {
  if (!lost_.empty()) lost_ = ledger_->what_is_lost();
  if (!lost_.empty()) return refuse(calls);
  const Batch kind = kind_of(calls);
  ledger_->begin();
  make_steps(calls);
  if (ledger_->has_upkeep()) ledger_->upkeep(calls.empty() ? upkeep_alone : upkeep_beside);
  if (kind.reserves) crash_point(CrashPoint::reserve_before_commit);
  if (kind.settles) crash_point(CrashPoint::settle_before_commit);
  ledger_->commit();
  if (kind.reserves) crash_point(CrashPoint::reserve_after_commit);
  if (kind.settles) crash_point(CrashPoint::settle_after_commit);
  lost_ = ledger_->what_is_lost();
  if (!lost_.empty()) lose(calls);
  answer(calls);
  ledger_->tidy();  // After the answers, so that only later calls wait for it.
}

void LedgerStore::make_steps(std::span<QueuedCall> calls) {
  results_.clear();
  for (QueuedCall& queued : calls) {
    if (queued.task != nullptr) {
      ledger_->run(*queued.task);
      results_.emplace_back();
      if (auto damage = ledger_->take_damage()) results_.back() = std::unexpected(*damage);
    } else if (auto* list = std::get_if<List>(&queued.call)) {
      listings_.push_back({std::move(*list), std::move(queued.done), {}});
      queued.done = nullptr;
      results_.emplace_back();
    } else {
      results_.push_back(ledger_->step(queued.call));
    }
  }
}

/// Nothing may begin on a medium that no start will find (P5).
void LedgerStore::refuse(std::span<QueuedCall> calls) {
  for (QueuedCall& queued : calls) {
    if (queued.task != nullptr) queued.task->refuse(lost_);
    if (queued.done) done_with(queued.done, unavailable());
  }
  note_answered(calls.size());
}

/// The commit is on a medium that was moved away and may or may not come back.
void LedgerStore::lose(std::span<QueuedCall> calls) {
  const auto code =
      ledger_->has_written() ? StoreError::Code::in_doubt : StoreError::Code::unavailable;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].task != nullptr) calls[i].task->lose(lost_);
    results_[i] = std::unexpected(StoreError{code, lost_});
  }
}

void LedgerStore::answer(std::span<QueuedCall> calls) {
  const Turn turn;  // Each loop wakes up once for all of its answers.
  std::size_t answered = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    QueuedCall& queued = calls[i];
    const bool is_listed = queued.task == nullptr && std::holds_alternative<List>(queued.call);
    if (!is_listed) ++answered;  // A listing is answered at its end.
    if (!queued.done) continue;
    if (queued.task == nullptr) {
      changes_.notify(queued.call, results_[i]);
    } else if (const auto* change = queued.task->change()) {
      changes_.notify(change->call, change->result);
    }
    done_with(queued.done, std::move(results_[i]));
  }
  note_answered(answered);
}

StoreResult LedgerStore::unavailable() const {
  return std::unexpected(StoreError{StoreError::Code::unavailable, lost_});
}

void LedgerStore::go_on_listing() {
  Listing& listing = listings_.front();
  const auto rest = ledger_->list_slice(listing.verb, listing.found);
  if (rest) {
    listing.verb.after = rest;
    return;
  }
  Listing finished = std::move(listing);
  listings_.pop_front();
  StoreResult result = std::move(finished.found);
  if (auto damage = ledger_->take_damage()) result = std::unexpected(std::move(*damage));
  done_with(finished.done, lost_.empty() ? std::move(result) : unavailable());
  note_answered(1);
}

}  // namespace idem::embedded
