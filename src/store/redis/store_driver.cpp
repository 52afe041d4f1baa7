#include "store/redis/store_driver.hpp"

#include "core/record/which_store.hpp"
#include "core/transitions/transitions.hpp"
#include "store/redis/scripts.hpp"
#include "store/redis/server_check.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::redis {

/// Lets a sweep wait for the records that it ends.
struct Ends : Gathering {
  std::optional<StoreError> error{};
};

namespace {

using Code = StoreError::Code;

Subject subject_of(const Reserve& verb) {
  Subject subject{.id = verb.id};
  for (const OtherName& other : verb.also) subject.also.push_back(other.id);
  subject.generation = verb.generation;
  subject.needs_answer = true;
  subject.is_new_work = true;
  subject.quota = verb.quota;
  if (verb.quota) subject.scope = verb.scope;
  return subject;
}

/// The record of an owner's verb; null: the call is of another verb.
const RecordId* owners_record(const StoreCall& call) {
  return std::visit(
      [](const auto& verb) -> const RecordId* {
        using Verb = std::decay_t<decltype(verb)>;
        if constexpr (std::is_same_v<typename Verb::Reply, OwnerReply>) {
          return &verb.id;
        } else {
          return nullptr;
        }
      },
      call);
}

template <class Expected>
StoreResult to_result(Expected&& expected) {
  if (!expected) return std::unexpected(std::move(expected.error()));
  return StoreReply(std::move(*expected));
}

}  // namespace

StoreDriver::StoreDriver(Loop& loop, ChangeNotifier& changes, Url url, const RedisOptions& options)
    : Timed(loop),
      changes_(changes),
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
  Watcher* const watcher = changes_.watcher();
  if (watcher == nullptr || is_polling_ || !store_id_) return;
  auto ids = watcher->awaited();
  if (ids.empty()) return seen_.clear();
  is_polling_ = true;
  loop_.post([this, ids = std::move(ids)]() mutable { loop_.spawn(poll_awaited(std::move(ids))); });
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

Task<void> StoreDriver::poll_awaited(std::vector<RecordId> ids) {
  auto asking = scans_.versions(ids);
  const auto versions = co_await std::move(asking);
  if (versions) {
    std::map<RecordId, std::string> now;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      // A record that is seen for the first time may have changed since its waiter read it.
      const auto before = seen_.find(ids[i]);
      const bool is_new = before == seen_.end() || before->second != (*versions)[i];
      now[ids[i]] = (*versions)[i];
      if (is_new) changes_.watcher()->changed(ids[i]);
    }
    seen_ = std::move(now);
  }
  is_polling_ = false;
}

// ---- calls ----

Task<void> StoreDriver::serve(StoreCall call, StoreCompletion done) {
  Task<StoreResult> answering = answer(call);
  StoreResult result = co_await std::move(answering);
  changes_.notify(call, result);
  done(std::move(result));
}

Task<StoreResult> StoreDriver::answer(StoreCall& call) {
  Task<StoreResult> answering = [&]() -> Task<StoreResult> {
    if (const auto* verb = std::get_if<Reserve>(&call)) return steps_.make(call, subject_of(*verb));
    if (const auto* verb = std::get_if<Accept>(&call)) {
      return steps_.make(call, subject_of(verb->as));
    }
    if (const RecordId* id = owners_record(call)) return steps_.make(call, {.id = *id});
    if (const auto* verb = std::get_if<Find>(&call)) return find(verb->id);
    if (const auto* verb = std::get_if<Resolve>(&call)) {
      return steps_.make(call, {.id = verb->id, .needs_answer = true});
    }
    if (const auto* verb = std::get_if<CacheBust>(&call)) {
      return steps_.make(call, {.id = verb->id, .needs_answer = true, .needs_evidence = true});
    }
    if (const auto* verb = std::get_if<Reschedule>(&call)) {
      return steps_.make(call, {.id = verb->id});
    }
    if (const auto* verb = std::get_if<Reseal>(&call)) {
      return steps_.make(call, {.id = verb->id, .needs_answer = true, .needs_request = true});
    }
    if (const auto* verb = std::get_if<PutRecord>(&call)) {
      return steps_.make(call, {.id = verb->id,
                                .generation = verb->generation,
                                .needs_answer = true,
                                .needs_evidence = true});
    }
    if (const auto* verb = std::get_if<Sweep>(&call)) {
      return sweep(verb->limit);
    }
    if (const auto* verb = std::get_if<Reap>(&call)) {
      return lifecycle(reap_set, Reap{1}, verb->limit);
    }
    if (std::holds_alternative<Claim>(call)) return claim(call);
    if (const auto* verb = std::get_if<List>(&call)) return list(*verb);
    if (std::holds_alternative<Count>(call)) return count();
    if (const auto* verb = std::get_if<AdoptRoutes>(&call)) return adopt(*verb);
    if (const auto* verb = std::get_if<AppendLine>(&call)) return journals_.append(*verb);
    if (const auto* verb = std::get_if<ReadLines>(&call)) return journals_.read(*verb);
    if (const auto* verb = std::get_if<ListJournals>(&call)) return journals_.list(*verb);
    if (const auto* verb = std::get_if<DropJournal>(&call)) return journals_.drop(*verb);
    return read_evidence(std::get<ReadEvidence>(call).id);
  }();
  co_return co_await std::move(answering);
}

Task<StoreResult> StoreDriver::find(RecordId id) {
  auto looking = steps_.look_at(id);
  auto found = co_await std::move(looking);
  co_return to_result(std::move(found));
}

Task<StoreResult> StoreDriver::read_evidence(RecordId id) {
  auto reading = scans_.evidence(id);
  auto log = co_await std::move(reading);
  co_return to_result(std::move(log));
}

Task<StoreResult> StoreDriver::claim(StoreCall& call) {
  // Most often the first one is claimable. If other nodes claim at the same time, or many requests
  // have expired and wait for the sweeper, this tries the later ones, too.
  std::size_t seen = 0;
  for (std::size_t limit = limits::redis_claims_seen_min; limit <= limits::redis_claims_seen_max;
       limit *= 8) {
    auto asking_time = steps_.now_at(names_.bucket(0).slot);
    const auto now = co_await std::move(asking_time);
    if (!now) co_return std::unexpected(now.error());
    auto looking = scans_.due(pending_set, *now, limit);
    const auto due = co_await std::move(looking);
    if (!due) co_return std::unexpected(due.error());
    for (const Due& one : std::span(*due).subspan(std::min(due->size(), seen))) {
      Task<StoreResult> claiming = steps_.make(call, {.id = one.id, .needs_request = true});
      StoreResult claimed = co_await std::move(claiming);
      // By another generation than the present one: the next claim knows it.
      if (!claimed && claimed.error().code == Code::refused) {
        co_return StoreReply(std::optional<Claimed>());
      }
      if (!claimed && claimed.error().is_final()) {
        Task<void> hiding = scans_.hide(pending_set, one.id, true);
        co_await std::move(hiding);
      }
      if (!claimed || std::get<std::optional<Claimed>>(*claimed)) co_return claimed;
    }
    if (due->size() < limit) break;
    seen = limit;
  }
  co_return StoreReply(std::optional<Claimed>());
}

Task<StoreResult> StoreDriver::list(List verb) {
  auto asking_time = steps_.now_at(names_.bucket(0).slot);
  const auto now = co_await std::move(asking_time);
  if (!now) co_return std::unexpected(now.error());
  auto listing = scans_.list(std::move(verb), *now);
  auto records = co_await std::move(listing);
  co_return to_result(std::move(records));
}

Task<StoreResult> StoreDriver::count() {
  auto asking_time = steps_.now_at(names_.bucket(0).slot);
  const auto now = co_await std::move(asking_time);
  if (!now) co_return std::unexpected(now.error());
  auto counting = scans_.count();
  auto census = co_await std::move(counting);
  if (census) {
    census->now = *now;
    census->leases_ended = steps_.leases_ended();
  }
  co_return to_result(std::move(census));
}

Task<StoreResult> StoreDriver::adopt(const AdoptRoutes& verb) {
  auto adopting = identity_.adopt(verb, settings_);
  auto reply = co_await std::move(adopting);
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  co_return StoreReply(std::move(*reply));
}

// ---- sweeping and reaping ----

Task<void> StoreDriver::end_one(RecordId id, const StoreCall& one, std::string_view set,
                                std::vector<LifecycleStep>& steps, Ends& ends) {
  Task<StoreResult> ending = steps_.make(one, {.id = id});
  StoreResult ended = co_await std::move(ending);
  if (ended) {
    auto& made = std::get<std::vector<LifecycleStep>>(*ended);
    steps.insert(steps.end(), made.begin(), made.end());
    const bool is_damaged = std::ranges::any_of(made, &LifecycleStep::damaged);
    if (is_damaged) {  // It would be due at every sweep, and only an operator can end it.
      Task<void> hiding = scans_.hide(set, id, true);
      co_await std::move(hiding);
    }
  } else if (ended.error().is_final()) {
    const bool is_damaged = ended.error().code == Code::damaged;
    if (is_damaged) steps.push_back({id, State{}, std::nullopt, {}, true});
    Task<void> hiding = scans_.hide(set, id, true);
    co_await std::move(hiding);
  } else {
    ends.error = std::move(ended.error());
  }
  ends.one_done(loop_);
}

// Each pass also looks at the lists of a few buckets, so that all are looked at within a minute.
Task<StoreResult> StoreDriver::sweep(std::size_t limit) {
  Task<void> looking = lists_.turn();
  co_await std::move(looking);
  Task<StoreResult> sweeping = lifecycle(sweep_set, Sweep{1}, limit);
  co_return co_await std::move(sweeping);
}

Task<StoreResult> StoreDriver::lifecycle(std::string_view set, StoreCall one, std::size_t limit) {
  auto asking_time = steps_.now_at(names_.bucket(0).slot);
  const auto now = co_await std::move(asking_time);
  if (!now) co_return std::unexpected(now.error());
  auto looking = scans_.due(set, *now, limit);
  const auto due = co_await std::move(looking);
  if (!due) co_return std::unexpected(due.error());
  std::vector<LifecycleStep> steps;
  Ends ends{{due->size()}};
  for (const Due& record : *due) loop_.spawn(end_one(record.id, one, set, steps, ends));
  Task<void> waiting = ends.all();
  co_await std::move(waiting);
  // The steps that were made are reported and counted; a failed one is due again next time.
  if (steps.empty() && ends.error) co_return std::unexpected(std::move(*ends.error));
  co_return StoreReply(std::move(steps));
}

Task<void> StoreDriver::reap_all() {
  for (;;) {
    Task<StoreResult> reaping = lifecycle(reap_set, Reap{1}, limits::sweep_batch);
    const StoreResult reaped = co_await std::move(reaping);
    if (!reaped || std::get<std::vector<LifecycleStep>>(*reaped).empty()) co_return;
  }
}

}  // namespace idem::redis
