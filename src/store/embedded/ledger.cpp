#include "store/embedded/ledger.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <iterator>

namespace idem::embedded {

Ledger::Ledger(LedgerParts parts)
    : naming_(std::move(parts.naming)),
      clock_(std::move(parts.clock)),
      medium_(std::move(parts.medium)),
      table_(std::move(parts.table)),
      in_common_(std::move(parts.in_common)),
      fences_{parts.highest_fence, in_common_ ? &in_common_->last_fence : nullptr},
      fence_high_water_(parts.noted_fence) {
  if (parts.found == LedgerParts::Found::closed) return;
  begin();
  if (parts.found == LedgerParts::Found::restored) {
    end_restored_records(context());
  } else {
    cut_off_ = end_cut_off_attempts(context());
  }
  commit();
}

void Ledger::begin() {
  now_ = clock_.now();
  medium_->begin(now_);
}

namespace {

/// What was done in front of the damage is done, and has to be reported.
bool has_done_something(const StoreResult& result) {
  if (!result) return true;
  if (const auto* steps = std::get_if<std::vector<LifecycleStep>>(&*result)) return !steps->empty();
  const auto* const claimed = std::get_if<std::optional<Claimed>>(&*result);
  return claimed != nullptr && *claimed;
}

}  // namespace

StoreResult Ledger::step(StoreCall& call) {
  StoreResult result = do_step(call, context());
  if (auto damage = take_damage(); damage && !has_done_something(result)) {
    result = std::unexpected(std::move(*damage));
  }
  if (std::holds_alternative<Sweep>(call) && result && !cut_off_.empty()) {
    auto& steps = std::get<std::vector<LifecycleStep>>(*result);
    std::ranges::move(std::exchange(cut_off_, {}), std::back_inserter(steps));
  }
  return result;
}

void Ledger::run(StoreTask& task) {
  if (task.make_steps(context())) return;
  medium_->run(task, [this](StoreCall& call) { return step(call); });
}

void Ledger::commit() {
  table_->flush();
  if (has_written()) {
    if (fences_.last > fence_high_water_) {
      fence_high_water_ = fences_.last + limits::fence_block;
      medium_->put_highest_fence(fence_high_water_);
    }
    if (now_ - last_mark_ >= limits::store_clock_persist_interval) mark_time();
  }
  medium_->commit();
}

std::optional<RecordId> Ledger::list_slice(const List& verb, std::vector<Record>& found) {
  return table_->list(verb, clock_.now(), limits::list_slice_rows, found);
}

void Ledger::close() {
  begin();
  medium_->put_highest_fence(fences_.last);  // Nothing above it was granted.
  medium_->put_closed();
  mark_time();
  medium_->commit();
  medium_->close();
}

void Ledger::mark_time() {
  const ClockMark mark = clock_.mark();
  medium_->put_clock_mark(mark);
  last_mark_ = mark.store;
}

}  // namespace idem::embedded
