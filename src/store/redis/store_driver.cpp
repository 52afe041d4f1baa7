#include "store/redis/store_driver.hpp"

#include "core/record/which_store.hpp"
#include "core/transitions/transitions.hpp"
#include "store/redis/scripts.hpp"
#include "store/redis/server_check.hpp"

#include <idem/limits.hpp>

#include <algorithm>

template class idem::compare_and_set::Calls<idem::redis::StoreDriver>;

namespace idem::redis {
namespace {

std::string_view set_of(Work work) {
  switch (work) {
    case Work::sweep:
      return sweep_set;
    case Work::reap:
      return reap_set;
    case Work::claim:
      return pending_set;
  }
  std::unreachable();
}

}  // namespace

StoreDriver::StoreDriver(Loop& loop, ChangeNotifier& changes, Url url, const RedisOptions& options)
    : Timed(loop),
      Calls(loop, changes),
      options_(options),
      is_cluster_(url.layout == Layout::cluster),
      place_(place_of(url)),
      names_(url.prefix),
      servers_(loop, std::move(url), limits::store_reply_max, limits::redis_lanes),
      client_(loop, servers_),
      identity_(client_, names_, versions_),
      steps_(client_, names_, versions_, identity_, options.clock),
      scans_(client_, names_),
      lists_(client_, names_, is_cluster_, options_.warn),
      journals_(client_, names_, options.clock) {
  servers_.set_check([this](Connection& connection) { return check(connection); });
  identity_.set_reap([this] { return reap_all(); });
}

// ---- opening, and checks that go on ----

Task<std::optional<std::string>> StoreDriver::check(Connection& connection) {
  auto checking = check_server(connection, is_cluster_);
  const ServerCheck checked = co_await std::move(checking);
  if (checked.refusal) co_return checked.refusal;
  for (const std::string& warning : checked.warnings) {
    if (std::ranges::find(warned_, warning) != warned_.end()) continue;
    warned_.push_back(warning);
    if (options_.warn) options_.warn(warning);
  }
  if (!store_id_) accepted_loss_ = std::max(accepted_loss_, checked.loss);
  if (auto why = why_weaker(checked); !why.empty()) steps_.refuse_new_work(std::move(why));
  auto loading = load_scripts(connection);
  auto unloaded = co_await std::move(loading);
  if (unloaded || is_cluster_) co_return unloaded;
  auto identifying = check_identity(connection);
  co_return co_await std::move(identifying);
}

// Its operator has seen the warnings of the start, and no others.
std::string StoreDriver::why_weaker(const ServerCheck& checked) const {
  if (!store_id_ || checked.loss <= accepted_loss_) return {};
  return "since this process started the server has become less durable: " + checked.why_lost +
         "; set it back, or restart this process to accept that";
}

// In a cluster the scripts check each bucket by itself (commit.lua).
Task<std::optional<std::string>> StoreDriver::check_identity(Connection& connection) {
  if (!store_id_) co_return std::nullopt;
  Task<CommandResult> asking = connection.ask(command({"GET", names_.identity().tag}));
  const CommandResult answer = co_await std::move(asking);
  if (!answer) co_return answer.error().why;
  if (answer->kind == Reply::Kind::nil) {
    co_return "the store " + store_id_text(*store_id_) +
        " has lost its records, so it is unknown what ran; start again to begin with an empty one "
        "(which a start with store_id refuses)";
  }
  const auto value = parse_identity_value(answer->text);
  if (!value) co_return std::string(value.error());
  if (value->identity.store_id != *store_id_) {
    co_return another_store(*store_id_, value->identity.store_id);
  }
  co_return std::nullopt;
}

Task<std::expected<Identity, std::string>> StoreDriver::open(IdentitySettings settings) {
  settings_ = settings;
  auto opening = servers_.open();
  const auto opened = co_await std::move(opening);
  if (!opened) co_return std::unexpected(opened.error());
  auto settling = identity_.settle(std::move(settings), options_.which);
  auto settled = co_await std::move(settling);
  if (!settled) co_return std::unexpected(std::move(settled.error()));
  store_id_ = settled->store_id;
  if (options_.opened) options_.opened({store_id_text(*store_id_), place_, settled->is_new});
  check_at_ = MonotonicClock::now() + limits::redis_check_interval;
  co_return std::move(settled->identity);
}

void StoreDriver::close() {
  is_closed_ = true;
  servers_.close();
}

void StoreDriver::tick(MonotonicTime now) {
  if (is_closed_) return;
  // Posted: a coroutine may end when it is spawned, and a tick must not make or destroy a Timed.
  if (now >= check_at_ && !is_checking_) {
    is_checking_ = true;
    loop_.post([this] { loop_.spawn(check_again()); });
  }
  if (store_id_) poll_awaited(now, Millis(0));  // At each tick.
}

// An eviction policy that is set later loses records, too, and so does a log without syncs.
Task<void> StoreDriver::check_again() {
  std::string why;
  for (Connection* const connection : servers_.owners()) {
    if (!connection->is_open()) continue;
    auto checking = check_server(*connection, is_cluster_);
    const ServerCheck checked = co_await std::move(checking);
    if (!connection->is_open()) continue;
    if (auto weaker = why_weaker(checked); !checked.refusal) {
      if (!weaker.empty()) why = std::move(weaker);
    } else if (checked.is_elsewhere) {
      connection->close(*checked.refusal);
    } else {
      why = *checked.refusal;
    }
  }
  if (!why.empty() && why != why_refused_ && options_.warn) options_.warn(why);
  why_refused_ = why;
  steps_.refuse_new_work(std::move(why));
  check_at_ = MonotonicClock::now() + limits::redis_check_interval;
  is_checking_ = false;
}

// ---- calls ----

Task<DueResult> StoreDriver::due(Work work, StoreTime now, std::size_t limit) {
  return scans_.due(set_of(work), now, limit);
}

Task<void> StoreDriver::hide(Work work, RecordId id) { return scans_.hide(set_of(work), id); }

Task<std::expected<StoreTime, StoreError>> StoreDriver::now_of_lists() {
  return steps_.now_at(names_.bucket(0).slot);
}

Task<StoreResult> StoreDriver::read_evidence(RecordId id) {
  auto reading = scans_.evidence(id);
  auto log = co_await std::move(reading);
  co_return compare_and_set::to_result(std::move(log));
}

Task<StoreResult> StoreDriver::list(List verb) {
  auto asking_time = now_of_lists();
  const auto now = co_await std::move(asking_time);
  if (!now) co_return std::unexpected(now.error());
  auto listing = scans_.list(std::move(verb), *now);
  auto records = co_await std::move(listing);
  co_return compare_and_set::to_result(std::move(records));
}

Task<StoreResult> StoreDriver::count() {
  auto asking_time = now_of_lists();
  const auto now = co_await std::move(asking_time);
  if (!now) co_return std::unexpected(now.error());
  auto counting = scans_.count();
  auto census = co_await std::move(counting);
  if (census) {
    // By another server's clock.
    census->now = std::max(*now, census->oldest_unknown.value_or(*now));
    census->leases_ended = steps_.leases_ended();
  }
  co_return compare_and_set::to_result(std::move(census));
}

Task<StoreResult> StoreDriver::adopt(AdoptRoutes verb) {
  auto adopting = identity_.adopt(verb, settings_);
  auto reply = co_await std::move(adopting);
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  co_return StoreReply(std::move(*reply));
}

// ---- sweeping and reaping ----

// Each pass also looks at the lists of a few buckets, so that all are looked at within a minute.
Task<StoreResult> StoreDriver::sweep(std::size_t limit) {
  Task<void> looking = lists_.turn();
  co_await std::move(looking);
  Task<StoreResult> sweeping = lifecycle(Work::sweep, Sweep{1}, limit);
  co_return co_await std::move(sweeping);
}

Task<StoreResult> StoreDriver::reap(std::size_t limit) {
  return lifecycle(Work::reap, Reap{1}, limit);
}

Task<void> StoreDriver::reap_all() {
  for (;;) {
    Task<StoreResult> reaping = lifecycle(Work::reap, Reap{1}, limits::sweep_batch);
    const StoreResult reaped = co_await std::move(reaping);
    if (!reaped || std::get<std::vector<LifecycleStep>>(*reaped).empty()) co_return;
  }
}

}  // namespace idem::redis
