#include "store/dynamodb/tallies.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"

namespace idem::dynamodb {
namespace {

constexpr std::string_view active = "na";
constexpr std::string_view bytes = "nb";

std::string counter_of(State state) { return "n" + std::to_string(static_cast<unsigned>(state)); }

}  // namespace

void Tallies::add(const Key& key, std::string_view name, std::int64_t change, Millis pause) {
  if (change == 0) return;
  const bool is_new = !pending_.contains(key) && !writing_.contains(key);
  pending_[key][std::string(name)] += change;
  if (is_new) client_.loop().spawn_beside(write_out(key, pause));
}

void Tallies::moved(const std::optional<State>& before, const std::optional<State>& after) {
  if (before == after) return;
  const Key key = counts_key();
  if (before) add(key, counter_of(*before), -1, limits::dynamodb_counting_pause);
  if (after) add(key, counter_of(*after), 1, limits::dynamodb_counting_pause);
}

void Tallies::used(const std::string& scope, const UsageChange& change) {
  const Key key = usage_key(scope);
  add(key, active, change.active, Millis(0));
  add(key, bytes, change.bytes, Millis(0));
}

/// One writer for each key: it goes on while there are changes.
Task<void> Tallies::write_out(Key key, Millis pause) {
  while (pending_.contains(key) && !client_.is_closed()) {
    if (pause > Millis(0) && !is_flushing_) {
      Task<void> sleeping = client_.loop().sleep(pause);
      co_await std::move(sleeping);
    }
    Task<void> writing = write_once(key);
    co_await std::move(writing);
  }
}

Task<void> Tallies::write_once(Key key) {
  auto node = pending_.extract(key);
  if (node.empty() || writing_.contains(key)) {
    if (!node.empty()) pending_.insert(std::move(node));
    Task<void> pausing = client_.pause();
    co_await std::move(pausing);
    co_return;
  }
  Update update(key);
  for (const auto& [name, change] : node.mapped()) update.add(name, change);
  writing_.insert(std::move(node));
  Task<ReplyResult> asking = client_.ask_once({"UpdateItem", update.to_request(client_.table())});
  const ReplyResult reply = co_await std::move(asking);
  auto written = writing_.extract(key);
  // In doubt counts as written: a counter that is off by a few is better than one counted twice.
  const bool is_undone = !reply && reply.error().code == StoreError::Code::unavailable;
  if (!is_undone) co_return;
  for (const auto& [name, change] : written.mapped()) pending_[key][name] += change;
  Task<void> pausing = client_.pause();
  co_await std::move(pausing);
}

Task<void> Tallies::flush() {
  is_flushing_ = true;
  const MonotonicTime until = MonotonicClock::now() + limits::store_repeat_max;
  while ((!pending_.empty() || !writing_.empty()) && MonotonicClock::now() < until) {
    if (!pending_.empty()) {
      const Key key = pending_.begin()->first;
      Task<void> writing = write_once(key);
      co_await std::move(writing);
    } else {
      Task<void> sleeping = client_.loop().sleep(limits::cache_close_interval);
      co_await std::move(sleeping);
    }
  }
  is_flushing_ = false;
}

Task<std::expected<std::array<std::int64_t, 7>, NoReply>> Tallies::counts() {
  Task<void> flushing = flush();
  co_await std::move(flushing);
  auto reading = client_.read(counts_key());
  const auto item = co_await std::move(reading);
  if (!item) co_return std::unexpected(item.error());
  std::array<std::int64_t, 7> counts{};
  for (std::uint8_t state = 1; *item && state <= 6; ++state) {
    counts[state] = (*item)->number(counter_of(static_cast<State>(state))).value_or(0);
  }
  co_return counts;
}

Task<std::expected<UsageChange, NoReply>> Tallies::usage(std::string scope) {
  const Key key = usage_key(scope);
  // A change that is added while the counters are read may count twice, or not at all.
  const MonotonicTime until = MonotonicClock::now() + limits::dynamodb_adding_max;
  while ((pending_.contains(key) || writing_.contains(key)) && MonotonicClock::now() < until) {
    Task<void> sleeping = client_.loop().sleep(limits::cache_close_interval);
    co_await std::move(sleeping);
  }
  auto reading = client_.read(key);
  const auto item = co_await std::move(reading);
  if (!item) co_return std::unexpected(item.error());
  UsageChange sum;
  if (!*item) co_return sum;
  sum.active = (*item)->number(active).value_or(0);
  sum.bytes = (*item)->number(bytes).value_or(0);
  co_return sum;
}

Task<std::optional<StoreError>> UsageLedger::look_at(std::string scope, Quota quota) {
  for (;;) {
    const UsageView::Need need = view_.need(scope, quota);
    if (need == UsageView::Need::none) co_return std::nullopt;
    if (need == UsageView::Need::read) {
      const UsageChange before = view_.begin_reading(scope);
      auto reading = tallies_.usage(scope);
      const auto sum = co_await std::move(reading);
      view_.end_reading(scope, before, sum ? std::optional(*sum) : std::nullopt);
      if (!sum) co_return to_store_error(sum.error());
      co_return std::nullopt;
    }
    Task<void> pausing = client_.pause();
    co_await std::move(pausing);
  }
}

void UsageLedger::end(const std::string& scope, const UsageChange& change, bool is_written) {
  view_.end(scope, change, is_written);
  if (is_written) tallies_.used(scope, change);
}

}  // namespace idem::dynamodb
