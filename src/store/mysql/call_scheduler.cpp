#include "store/mysql/call_scheduler.hpp"

#include "core/record/which_store.hpp"
#include "store/mysql/failures.hpp"
#include "store/mysql/queries.hpp"
#include "store/verb_traits.hpp"

#include <idem/health_limits.hpp>
#include <idem/limits.hpp>

#include <mysql.h>

#include <algorithm>

namespace idem::mysql {
namespace {

using Code = StoreError::Code;

StoreError error(Code code, std::string_view why) { return {code, std::string(why)}; }

bool is_within(const Waiting& waiting, Millis length) {
  return MonotonicClock::now() - waiting.since < length;
}

// Two of records, so that one batch is read while another commits. Two of others, so that no order
// that reads the whole table holds up the journals.
constexpr Lane lanes_of_workers[] = {Lane::records, Lane::records, Lane::finds, Lane::others,
                                     Lane::others};

// A third of the session's wait_timeout (connection.cpp).
constexpr auto ask_idle_server_after = std::chrono::seconds(10);

/// The candidates for one claim: most often the first is claimable, but other nodes claim, too.
constexpr std::size_t claims_seen_first = 8;
constexpr std::size_t claims_seen_max = 512;

// A count that takes as long is not made again at once, but after so many times its length.
constexpr Millis counted_slowly{200};
constexpr int count_pauses = 50;

constexpr auto tidy_interval = std::chrono::minutes(10);

template <class Result>
Committed one_result(Result result) {
  std::vector<CallResult> results;
  results.push_back({std::move(result)});
  return results;
}

}  // namespace

CallScheduler::CallScheduler(Loop& loop, const Url& url, ChangeNotifier& changes)
    : Timed(loop), url_(url), changes_(changes), servers_(url) {}

CallScheduler::~CallScheduler() = default;

Task<void> CallScheduler::open(IdentitySettings settings, MysqlOptions options, Opening opened) {
  for (const Lane lane : lanes_of_workers) {
    workers_.push_back(std::make_unique<Worker>(loop_, url_, lane));
  }
  settings_ = settings;
  Link& first = workers_.front()->link;
  auto opening = servers_.open(first, std::move(settings), options);
  auto database = co_await std::move(opening);
  if (!database) {
    first.connection.close();
    opened->set_value(std::unexpected(std::move(database.error())));
    co_return;
  }
  if (options.opened) {
    options.opened({store_id_text(database->store_id), first.connection.place(), database->is_new});
  }
  compare_at_ = MonotonicClock::now() + limits::server_check_interval;
  poller_.emplace(loop_, url_, servers_, changes_);
  for (auto& worker : workers_) {
    ++serving_;
    loop_.spawn(serve(*worker));
  }
  opened->set_value(std::move(database->identity));
}

void CallScheduler::note_result(const StoreCall& call, const CallResult& result) {
  if (result.ended_lease) ++leases_ended_;
  if (result.result) {
    if (const auto* outcome = std::get_if<ReserveOutcome>(&*result.result)) {
      const auto* const granted = std::get_if<Execute>(outcome);
      if (granted != nullptr) servers_.note(granted->id, granted->attempt.fence);
    } else if (const auto* claimed = std::get_if<std::optional<Claimed>>(&*result.result)) {
      if (*claimed) servers_.note((*claimed)->id, (*claimed)->attempt.fence);
    }
  }
  changes_.notify(call, result.result);
}

// ---- waiting and ending ----

void CallScheduler::wake(Worker& worker) {
  if (!worker.parked) return;
  // Posted, because the running step may be another worker's.
  loop_.post([woken = std::move(*worker.parked)]() mutable { woken(true); });
  worker.parked.reset();
}

void CallScheduler::wake_all() {
  if (lanes_.size() == 0 && !ending_) return;
  for (auto& worker : workers_) wake(*worker);
}

void CallScheduler::end_thread() noexcept { mysql_thread_end(); }

void CallScheduler::close(std::function<void()> done) {
  closed_ = std::move(done);
  if (poller_) poller_->stop();
  if (serving_ == 0) return closed_();
  end_if_idle();
}

bool CallScheduler::is_idle() const noexcept {
  const auto is_parked = [](const auto& worker) { return worker->parked.has_value(); };
  return waiting() == 0 && std::ranges::all_of(workers_, is_parked);
}

// Calls that a completion has made are posted already, and come before this.
void CallScheduler::end_if_idle() {
  if (!closed_ || ending_ || !is_idle()) return;
  loop_.post([this] {
    if (!is_idle()) return;
    ending_ = true;
    wake_all();
  });
}

void CallScheduler::tick(MonotonicTime now) {
  const auto is_due = [&](const sql_server::Later& one) { return one.due <= now; };
  for (sql_server::Later& one : later_) {
    if (is_due(one)) lanes_.add(std::move(one.waiting));
  }
  std::erase_if(later_, is_due);
  if (now >= compare_at_) {
    compare_at_ = now + limits::server_check_interval;
    servers_.doubt();
  }
  wake_all();
  if (servers_.in_use()->is_in_doubt()) wake(*workers_.front());
  for (auto& worker : workers_) {
    const Connection& connection = worker->link.connection;
    if (connection.is_open() && now - connection.used() >= ask_idle_server_after) wake(*worker);
  }
}

Task<void> CallScheduler::park(Worker& worker) {
  const auto start = [&](Resumption<bool> woken) {
    worker.parked.emplace(std::move(woken));
    end_if_idle();
  };
  auto waiting = suspend<bool>(start);
  co_await waiting;
}

Task<void> CallScheduler::serve(Worker& worker) {
  Connection& connection = worker.link.connection;
  for (;;) {
    auto batch = lanes_.take(worker.lane);
    if (batch.empty()) {
      if (ending_) break;
      if (connection.is_open() &&
          MonotonicClock::now() - connection.used() >= ask_idle_server_after) {
        auto asking = connection.run("DO 0", limits::store_reply_max);
        const QueryResult answered = co_await std::move(asking);
        if (!answered) connection.close();
      }
      if (servers_.in_use()->take_doubt()) {
        servers_.doubt();
        auto reaching = servers_.reach(worker.link);
        (void)co_await std::move(reaching);
        continue;  // Calls may have come meanwhile.
      }
      Task<void> parking = park(worker);
      co_await std::move(parking);
      continue;
    }
    Lanes::Taken taken;
    if (worker.lane == Lane::records) taken = Lanes::taken_by(batch);
    bool is_reached = servers_.is_ready(worker.link);
    if (!is_reached) {
      auto reaching = servers_.reach(worker.link);
      is_reached = co_await std::move(reaching);
    }
    if (is_reached) {
      Task<void> working = work(worker, std::move(batch));
      co_await std::move(working);
    } else {
      refuse(std::move(batch), Code::unavailable, servers_.why_out_of_reach());
    }
    lanes_.free(taken);
    // Calls about these records may have waited for them while the others were parked.
    if (worker.lane == Lane::records) wake_all();
  }
  connection.close();
  if (--serving_ == 0) closed_();
}

// ---- work ----

Terms CallScheduler::terms_of(Worker& worker) {
  return {worker.link.connection, worker.link.server.packet_max, last_fence_};
}

Task<void> CallScheduler::work(Worker& worker, std::vector<Waiting> batch) {
  switch (worker.lane) {
    case Lane::records:
      return work_on_records(worker, std::move(batch));
    case Lane::finds:
      return work_on_finds(worker, std::move(batch));
    case Lane::others:
      break;
  }
  return work_on_one(worker, std::move(batch.front()));
}

Task<void> CallScheduler::work_on_records(Worker& worker, std::vector<Waiting> batch) {
  auto making = make_steps(terms_of(worker), batch);
  Committed made = co_await std::move(making);
  if (!made) {
    on_undone(worker, std::move(batch), made.error());
    co_return;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) finish(batch[i], std::move((*made)[i]));
}

Task<void> CallScheduler::work_on_finds(Worker& worker, std::vector<Waiting> batch) {
  std::vector<RecordId> ids;
  ids.reserve(batch.size());
  for (const Waiting& one : batch) ids.push_back(std::get<Find>(one.call).id);
  auto finding = find_many(worker.link.connection, std::move(ids));
  auto found = co_await std::move(finding);
  if (!found) {
    on_undone(worker, std::move(batch), {found.error()});
    co_return;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) finish(batch[i], {std::move((*found)[i])});
}

Task<void> CallScheduler::work_on_one(Worker& worker, Waiting waiting) {
  auto asking = ask_one(worker, waiting.call);
  Committed answered = co_await std::move(asking);
  if (answered) {
    finish(waiting, std::move(answered->front()));
    co_return;
  }
  if (worker.link.connection.is_open()) {
    // AdoptRoutes and the journals leave it to this.
    auto undoing = worker.link.connection.run("ROLLBACK", limits::store_reply_max);
    const QueryResult undone = co_await std::move(undoing);
    if (!undone) worker.link.connection.close();
  }
  std::vector<Waiting> batch;
  batch.push_back(std::move(waiting));
  on_undone(worker, std::move(batch), answered.error());
}

Task<Committed> CallScheduler::ask_one(Worker& worker, StoreCall& call) {
  if (std::holds_alternative<Claim>(call)) return claim(worker, call);
  if (const auto* verb = std::get_if<Sweep>(&call)) {
    return lifecycle(worker, Due::sweep, Sweep{1}, verb->limit);
  }
  if (const auto* verb = std::get_if<Reap>(&call)) {
    return lifecycle(worker, Due::reap, Reap{1}, verb->limit);
  }
  if (auto* verb = std::get_if<AdoptRoutes>(&call)) return adopt(worker, *verb);
  if (std::holds_alternative<Count>(call)) return count(worker);
  return [](Connection& connection, const StoreCall& asked) -> Task<Committed> {
    Task<Answer> answering = [&] {
      if (const auto* verb = std::get_if<List>(&asked)) return list(connection, *verb);
      if (const auto* verb = std::get_if<ReadEvidence>(&asked)) {
        return read_evidence_of(connection, verb->id);
      }
      if (const auto* verb = std::get_if<AppendLine>(&asked)) return append_line(connection, *verb);
      if (const auto* verb = std::get_if<ReadLines>(&asked)) return read_lines(connection, *verb);
      if (const auto* verb = std::get_if<ListJournals>(&asked)) {
        return list_journals(connection, *verb);
      }
      return drop_journal(connection, std::get<DropJournal>(asked));
    }();
    Answer answer = co_await std::move(answering);
    if (!answer) co_return std::unexpected(Undone{std::move(answer.error())});
    co_return one_result(std::move(*answer));
  }(worker.link.connection, call);
}

// The server counts a whole index. Where that takes long, counting is a small part of the time.
Task<Committed> CallScheduler::count(Worker& worker) {
  const MonotonicTime begin = MonotonicClock::now();
  if (census_ && begin < count_at_) co_return one_result(StoreResult(*census_));
  auto counting = mysql::count(worker.link.connection);
  Answer answer = co_await std::move(counting);
  if (!answer) co_return std::unexpected(Undone{std::move(answer.error())});
  const Millis length = MonotonicClock::now() - begin;
  if (*answer) census_ = std::get<Census>(**answer);
  if (length >= counted_slowly) count_at_ = MonotonicClock::now() + length * count_pauses;
  co_return one_result(std::move(*answer));
}

// What it leaves, the next turn does.
Task<void> CallScheduler::tidy(Worker& worker) {
  Connection& connection = worker.link.connection;
  tidy_at_ = MonotonicClock::now() + tidy_interval;
  auto tidying = tidy_usage(connection);
  const auto tidied = co_await std::move(tidying);
  if (tidied || !connection.is_open()) co_return;
  auto undoing = connection.run("ROLLBACK", limits::store_reply_max);
  const QueryResult undone = co_await std::move(undoing);
  if (!undone) connection.close();
}

Task<Committed> CallScheduler::claim(Worker& worker, const StoreCall& call) {
  for (std::size_t limit = claims_seen_first; limit <= claims_seen_max; limit *= 8) {
    auto looking = due(worker.link.connection, Due::claim, limit);
    auto found = co_await std::move(looking);
    if (!found) {
      found.error().in_doubt = false;
      co_return std::unexpected(Undone{std::move(found.error())});
    }
    const bool are_all = found->size() < limit;
    auto claiming = make_claim(terms_of(worker), call, std::move(*found));
    Committed claimed = co_await std::move(claiming);
    if (!claimed) co_return claimed;
    const StoreResult& result = claimed->front().result;
    if (are_all || !result || std::get<std::optional<Claimed>>(*result)) co_return claimed;
  }
  co_return one_result(StoreResult(std::optional<Claimed>()));
}

Task<Committed> CallScheduler::lifecycle(Worker& worker, Due what, StoreCall one,
                                         std::size_t limit) {
  if (limit == 0) co_return one_result(StoreResult(std::vector<LifecycleStep>()));
  if (MonotonicClock::now() >= tidy_at_) {
    Task<void> tidying = tidy(worker);
    co_await std::move(tidying);
    if (!worker.link.connection.is_open()) {
      co_return std::unexpected(Undone{{0, "the connection was lost"}});
    }
  }
  auto looking = due(worker.link.connection, what, limit);
  auto found = co_await std::move(looking);
  if (!found) {
    found.error().in_doubt = false;
    co_return std::unexpected(Undone{std::move(found.error())});
  }
  if (found->empty()) co_return one_result(StoreResult(std::vector<LifecycleStep>()));
  auto stepping = make_lifecycle_steps(terms_of(worker), std::move(one), std::move(*found));
  co_return co_await std::move(stepping);
}

Task<Committed> CallScheduler::adopt(Worker& worker, const AdoptRoutes& verb) {
  Connection& connection = worker.link.connection;
  auto adopting = adopt_routes(connection, verb, settings_, servers_.store_id());
  auto reply = co_await std::move(adopting);
  if (!reply) co_return std::unexpected(Undone{std::move(reply.error())});
  if (!reply->why_not.empty() && connection.is_open()) {
    auto undoing = connection.run("ROLLBACK", limits::store_reply_max);
    const QueryResult undone = co_await std::move(undoing);
    if (!undone) connection.close();
  }
  co_return one_result(StoreResult(std::move(*reply)));
}

// ---- results ----

void CallScheduler::finish(Waiting& waiting, CallResult result) {
  if (result.held) {
    // A reserve waits a moment, so that it can name the other attempt. A call in doubt may meet its
    // own earlier transaction, and a settling write waits for its turn, as does a reserve that is
    // to be counted: these wait longer.
    const bool may_answer_held =
        result.result && std::holds_alternative<Reserve>(waiting.call) && !waiting.in_doubt;
    const Millis patience =
        may_answer_held ? Millis(limits::store_held_max) : limits::store_repeat_max;
    if (is_within(waiting, patience)) return ask_later(std::move(waiting));
    if (waiting.in_doubt) {
      result.result = std::unexpected(error(Code::in_doubt, "the record is held"));
    }
  }
  note_result(waiting.call, result);
  if (auto* census = result.result ? std::get_if<Census>(&*result.result) : nullptr) {
    census->leases_ended = leases_ended_;
  }
  waiting.done(std::move(result.result));
  waiting.done = nullptr;
}

void CallScheduler::ask_later(Waiting waiting) {
  later_.push_back({MonotonicClock::now() + limits::store_repeat_interval, std::move(waiting)});
}

void CallScheduler::refuse(std::vector<Waiting> batch, Code code, const std::string& why) {
  for (Waiting& one : batch) {
    Code answered = one.in_doubt ? Code::in_doubt : code;
    // A read gave the store nothing to hold.
    const bool may_hold = !traits_of(one.call).only_reads;
    if (answered == Code::unstorable && !may_hold) answered = Code::unavailable;
    finish(one, {std::unexpected(error(answered, why))});
  }
}

// The transaction is rolled back: each call is settled by its token, or has done nothing.
void CallScheduler::ask_again(std::vector<Waiting> batch, const Failure& failure) {
  std::vector<Waiting> late;
  std::vector<Waiting> at_once;
  for (Waiting& one : batch) {
    if (!is_within(one, limits::store_repeat_max)) {
      late.push_back(std::move(one));
    } else if (is_duplicate(failure)) {
      at_once.push_back(std::move(one));
    } else {
      ask_later(std::move(one));
    }
  }
  lanes_.put_back(std::move(at_once));
  refuse(std::move(late), Code::unavailable, failure_text(failure));
}

void CallScheduler::on_undone(Worker& worker, std::vector<Waiting> batch, const Undone& undone) {
  const Failure& failure = undone.failure;
  if (undone.is_read_only || is_other_server(failure)) {
    worker.link.connection.close();
    servers_.leave(worker.link);
    return refuse(std::move(batch), Code::unavailable, failure_text(failure));
  }
  if (failure.is_lost()) return on_lost(std::move(batch), failure);
  if (may_be_another_store(failure)) servers_.doubt();
  if (is_lock_wait(failure)) {
    // A scope's first row may not be made before another's transaction has ended. Alone, the
    // calls that need it hold up no other.
    for (Waiting& one : batch) {
      const Reserve* const reserve = reserve_in(one.call);
      one.alone |= reserve != nullptr && counts_alone(*reserve);
    }
  }
  if (is_race(failure)) return ask_again(std::move(batch), failure);
  const bool is_of_its_values = undone.is_too_large || is_unstorable(failure);
  if ((is_of_its_values || is_refusal(failure)) && batch.size() > 1) {
    // One call fails the batch: each is sent alone.
    for (Waiting& one : batch) one.alone = true;
    return lanes_.put_back(std::move(batch));
  }
  if (is_refusal(failure)) return refuse(std::move(batch), Code::refused, failure.message);
  refuse(std::move(batch), is_of_its_values ? Code::unstorable : Code::unavailable,
         failure_text(failure));
}

void CallScheduler::on_lost(std::vector<Waiting> batch, const Failure& failure) {
  std::vector<Waiting> again;
  for (Waiting& one : batch) {
    one.in_doubt |= failure.in_doubt && !traits_of(one.call).only_reads;
    const bool may_repeat = traits_of(one.call).is_repeatable || !failure.in_doubt;
    if (may_repeat && is_within(one, limits::store_repeat_max)) {
      again.push_back(std::move(one));
    } else {
      finish(one, {std::unexpected(
                      error(one.in_doubt ? Code::in_doubt : Code::unavailable, failure.message))});
    }
  }
  lanes_.put_back(std::move(again));
}

}  // namespace idem::mysql
