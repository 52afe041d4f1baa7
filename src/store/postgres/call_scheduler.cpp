#include "store/postgres/call_scheduler.hpp"

#include "core/record/which_store.hpp"
#include "store/postgres/failures.hpp"
#include "store/postgres/lock_holders.hpp"
#include "store/postgres/put_record.hpp"
#include "store/sql_server/backoff.hpp"
#include "store/verb_traits.hpp"

#include <idem/crash_point.hpp>
#include <idem/health_limits.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <iterator>

namespace idem::postgres {
namespace {

StoreError error(StoreError::Code code, std::string_view why) { return {code, std::string(why)}; }

constexpr std::string_view lock_not_available = "55P03";

bool is_within(const Waiting& waiting, Millis length) {
  return MonotonicClock::now() - waiting.since < length;
}

/// Whether a call of the batch ends its attempt. A renewed lease alone is no settlement: a crash
/// point there would strike before the attempt has done its work.
bool settles(const std::vector<Waiting>& batch) {
  return std::ranges::any_of(batch,
                             [](const Waiting& one) { return traits_of(one.call).ends_attempt; });
}

template <class Verb>
std::vector<const Verb*> calls_of(const std::vector<Waiting>& batch) {
  std::vector<const Verb*> calls;
  for (const Waiting& one : batch) calls.push_back(&std::get<Verb>(one.call));
  return calls;
}

std::vector<std::optional<CallResult>> all_of(std::vector<CallResult> results) {
  return {std::make_move_iterator(results.begin()), std::make_move_iterator(results.end())};
}

/// Of calls that one statement can carry (see Lanes).
Statement ask_all(const std::vector<Waiting>& batch) {
  const StoreCall& first = batch.front().call;
  if (std::holds_alternative<Reserve>(first)) return ask_reserves(calls_of<Reserve>(batch));
  if (std::holds_alternative<Find>(first)) return ask_finds(calls_of<Find>(batch));
  if (std::holds_alternative<PutRecord>(first)) return ask_puts(calls_of<PutRecord>(batch));
  if (std::holds_alternative<ReadEvidence>(first)) {
    return ask_evidence(calls_of<ReadEvidence>(batch));
  }
  std::vector<const StoreCall*> owners;
  for (const Waiting& one : batch) owners.push_back(&one.call);
  return ask_owners(owners);
}

std::vector<std::optional<CallResult>> results_of_all(const std::vector<Waiting>& batch,
                                                      const Rows& rows) {
  const StoreCall& first = batch.front().call;
  if (std::holds_alternative<Reserve>(first)) {
    return results_of_reserves(calls_of<Reserve>(batch), rows);
  }
  if (std::holds_alternative<Find>(first)) {
    return all_of(results_of_finds(calls_of<Find>(batch), rows));
  }
  if (std::holds_alternative<PutRecord>(first)) return results_of_puts(batch.size(), rows);
  if (std::holds_alternative<ReadEvidence>(first)) {
    return all_of(results_of_evidence(batch.size(), rows));
  }
  return results_of_owners(batch.size(), rows);
}

/// The record that a call names; none: it names none.
std::optional<RecordId> id_in(const StoreCall& call) {
  return std::visit(
      [](const auto& verb) -> std::optional<RecordId> {
        if constexpr (requires { verb.as.id; }) return verb.as.id;
        if constexpr (requires { RecordId(verb.id); }) return verb.id;
        return std::nullopt;
      },
      call);
}

}  // namespace

CallScheduler::CallScheduler(Loop& loop, std::string uri, ChangeNotifier& changes)
    : Timed(loop), uri_(std::move(uri)), changes_(changes) {}

CallScheduler::~CallScheduler() = default;

Task<void> CallScheduler::open(IdentitySettings settings, PostgresOptions options, Opening opened) {
  for (const Lane lane : {Lane::reserves, Lane::owners, Lane::finds, Lane::others}) {
    workers_.push_back(std::make_unique<Worker>(loop_, uri_, lane));
  }
  settings_ = settings;
  Connection& first = workers_.front()->connection;
  const auto connected = co_await first.open(limits::store_connect_max);
  if (!connected) {
    opened->set_value(std::unexpected(connected.error()));
    co_return;
  }
  auto database = co_await open_database(first, settings, options);
  if (!database) {
    first.close();
    opened->set_value(std::unexpected(std::move(database.error())));
    co_return;
  }
  store_id_ = database->store_id;
  const auto checked = co_await check_again(first, store_id_, *lineage_);
  if (!checked) {
    first.close();
    opened->set_value(std::unexpected(checked.error()));
    co_return;
  }
  workers_.front()->timeline = *checked;
  if (options.opened) options.opened({store_id_text(store_id_), first.place(), database->is_new});
  days_.expect(limits::retention_default);
  co_await days_.keep(first);
  compare_at_ = MonotonicClock::now() + limits::server_check_interval;
  poller_.emplace(loop_, uri_, store_id_, lineage_, changes_);
  for (auto& worker : workers_) {
    ++serving_;
    loop_.spawn(serve(*worker));
  }
  opened->set_value(std::move(database->identity));
}

void CallScheduler::add(Waiting waiting) {
  if (const auto* reserve = std::get_if<Reserve>(&waiting.call)) days_.expect(reserve->retention);
  if (const auto* accept = std::get_if<Accept>(&waiting.call)) days_.expect(accept->as.retention);
  lanes_.add(std::move(waiting));
}

void CallScheduler::note_result(const StoreCall& call, const CallResult& result) {
  if (const auto* reserve = std::get_if<Reserve>(&call)) days_.expect(reserve->retention);
  if (result.ended_lease) ++leases_ended_;
  lineage_->note(result.result);
  changes_.notify(call, result.result);
}

void CallScheduler::wake(Worker& worker) {
  if (!worker.parked) return;
  // Posted, because the running step may be another worker's.
  loop_.post([woken = std::move(*worker.parked)]() mutable { woken(true); });
  worker.parked.reset();
}

void CallScheduler::wake_all() {
  for (auto& worker : workers_) {
    if (lanes_.has(worker->lane) || ending_) wake(*worker);
  }
}

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
  if (std::ranges::any_of(later_, is_due)) {
    for (sql_server::Later& one : later_) {
      if (is_due(one)) lanes_.add(std::move(one.waiting));
    }
    std::erase_if(later_, is_due);
  }
  if (now >= compare_at_) {
    compare_at_ = now + limits::server_check_interval;
    ++doubts_;
  }
  if (!workers_.empty() && days_.is_due(now)) wake(*workers_.back());
  wake_all();
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
  for (;;) {
    lanes_.settle(worker.lane);
    auto batch = lanes_.take(worker.lane, limits::store_statement_calls_max);
    const bool keeps_days =
        worker.lane == Lane::others && !closed_ && days_.is_due(MonotonicClock::now());
    if (batch.empty() && !keeps_days) {
      if (ending_) break;
      co_await park(worker);
      continue;
    }
    // Another lane has reached the server that replaced this one, or it has ended the session: what
    // is not sent is not in doubt.
    const bool is_deposed = worker.timeline < lineage_->timeline();
    if (is_deposed || !worker.connection.is_still_there()) worker.connection.close();
    bool reached = worker.connection.is_open() && worker.compared == doubts_;
    if (!reached) reached = co_await reach(worker);
    if (!reached) {
      if (keeps_days) days_.postpone(retry_at_);
      refuse(std::move(batch), StoreError::Code::unavailable, why_out_of_reach_);
      continue;
    }
    if (keeps_days) {
      co_await days_.keep(worker.connection);
      if (!worker.connection.is_open()) {  // Nothing of the batch was sent.
        lanes_.put_back(std::move(batch));
        continue;
      }
    }
    if (!batch.empty()) co_await work(worker, std::move(batch));
  }
  worker.connection.close();
  if (--serving_ == 0) closed_();
}

Task<std::expected<void, std::string>> CallScheduler::compare(Worker& worker) {
  const std::uint64_t doubts = doubts_;
  const auto checked = co_await check_again(worker.connection, store_id_, *lineage_);
  if (!checked) co_return std::unexpected(checked.error());
  worker.timeline = *checked;
  worker.compared = doubts;
  co_return std::expected<void, std::string>();
}

Task<bool> CallScheduler::reach(Worker& worker) {
  Connection& connection = worker.connection;
  if (connection.is_open()) {
    const auto compared = co_await compare(worker);
    if (compared) co_return true;
    connection.close();
  }
  if (out_of_reach_ && MonotonicClock::now() < retry_at_) co_return false;
  auto connected = co_await connection.open(limits::store_connect_max);
  if (connected) connected = co_await compare(worker);
  if (connected) {
    out_of_reach_ = false;
    co_return true;
  }
  connection.close();
  backoff_ = sql_server::next_backoff(out_of_reach_ ? backoff_ : Millis(0));
  out_of_reach_ = true;
  why_out_of_reach_ = "the store cannot be reached: " + connected.error();
  retry_at_ = MonotonicClock::now() + sql_server::with_jitter(backoff_);
  co_return false;
}

Task<void> CallScheduler::work(Worker& worker, std::vector<Waiting> batch) {
  Waiting& front = batch.front();
  if (std::holds_alternative<AdoptRoutes>(front.call)) {
    co_return co_await ask_adopt(worker.connection, std::move(front));
  }
  if (batch.size() == 1 && (worker.lane == Lane::others || record_of(front.call) == nullptr)) {
    co_return co_await ask_alone(worker.connection, std::move(front));
  }
  const bool reserves = std::holds_alternative<Reserve>(front.call);
  const bool ends_attempts = settles(batch);
  if (reserves) crash_point(CrashPoint::reserve_before_commit);
  if (ends_attempts) crash_point(CrashPoint::settle_before_commit);
  const Statement statement = ask_all(batch);
  const QueryResult answer = co_await worker.connection.ask_often(statement.sql, statement.params,
                                                                  limits::store_reply_max);
  if (!answer) co_return co_await fail(worker.connection, std::move(batch), answer.error());
  if (reserves) crash_point(CrashPoint::reserve_after_commit);
  if (ends_attempts) crash_point(CrashPoint::settle_after_commit);
  auto results = results_of_all(batch, *answer);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    CallResult missing{
        std::unexpected(error(StoreError::Code::in_doubt, "the reply was incomplete"))};
    finish(batch[i], results[i] ? std::move(*results[i]) : std::move(missing));
  }
}

Task<void> CallScheduler::ask_alone(Connection& connection, Waiting waiting) {
  const bool accepts = std::holds_alternative<Accept>(waiting.call);
  if (accepts) crash_point(CrashPoint::reserve_before_commit);
  const Statement statement = ask_one(waiting.call);
  const QueryResult answer =
      co_await connection.ask_often(statement.sql, statement.params, limits::store_reply_max);
  if (answer) {
    if (accepts) crash_point(CrashPoint::reserve_after_commit);
    finish(waiting, results_of_one(waiting.call, *answer));
    co_return;
  }
  std::vector<Waiting> batch;
  batch.push_back(std::move(waiting));
  co_await fail(connection, std::move(batch), answer.error());
}

Task<void> CallScheduler::ask_adopt(Connection& connection, Waiting waiting) {
  auto reply =
      co_await adopt_routes(connection, std::get<AdoptRoutes>(waiting.call), settings_, store_id_);
  if (reply) {
    if (!reply->why_not.empty()) connection.close();  // This ends its transaction.
    finish(waiting, {std::move(*reply)});
    co_return;
  }
  // The transaction is open or gone.
  connection.close();
  const bool in_doubt = reply.error().sqlstate.empty();
  finish(
      waiting,
      {std::unexpected(error(in_doubt ? StoreError::Code::in_doubt : StoreError::Code::unavailable,
                             failure_text(reply.error())))});
}

void CallScheduler::finish(Waiting& waiting, CallResult result) {
  if (result.held) {
    // A reserve waits a moment, so that it can name the other attempt. A call in doubt may meet its
    // own earlier transaction, and a settling write waits for its turn: both wait longer.
    const bool may_answer_held = std::holds_alternative<Reserve>(waiting.call) && !waiting.in_doubt;
    const Millis patience =
        may_answer_held ? Millis(limits::store_held_max) : limits::store_repeat_max;
    if (is_within(waiting, patience)) return ask_later(std::move(waiting));
    if (waiting.in_doubt) {
      result.result = std::unexpected(error(StoreError::Code::in_doubt, "the record is held"));
    }
  }
  if (result.ended_lease) ++leases_ended_;
  if (auto* census = result.result ? std::get_if<Census>(&*result.result) : nullptr) {
    census->leases_ended = leases_ended_;
  }
  lineage_->note(result.result);
  changes_.notify(waiting.call, result.result);
  waiting.done(std::move(result.result));
  waiting.done = nullptr;
}

void CallScheduler::ask_later(Waiting waiting) {
  later_.push_back({MonotonicClock::now() + limits::store_repeat_interval, std::move(waiting)});
}

void CallScheduler::refuse(std::vector<Waiting> batch, StoreError::Code code,
                           const std::string& why) {
  for (Waiting& one : batch) {
    auto answered = one.in_doubt ? StoreError::Code::in_doubt : code;
    // A read gave the store nothing to hold: what the server found in its own tables is wrong.
    const bool may_hold = !traits_of(one.call).only_reads;
    if (answered == StoreError::Code::unstorable && !may_hold) {
      answered = StoreError::Code::unavailable;
    }
    finish(one, {std::unexpected(error(answered, why))});
  }
}

Task<void> CallScheduler::fail(Connection& connection, std::vector<Waiting> batch,
                               Failure failure) {
  const bool is_late = std::ranges::any_of(
      batch, [](const Waiting& one) { return !is_within(one, limits::store_repeat_max); });
  if (is_late && connection.is_open() && failure.sqlstate == lock_not_available) {
    const std::string holders = co_await who_holds_the_generation(connection);
    if (!holders.empty()) {
      failure.message +=
          "; an advisory lock of the store is held by " + holders + ": end that session";
    }
  }
  on_failure(connection, std::move(batch), failure);
}

void CallScheduler::on_failure(Connection& connection, std::vector<Waiting> batch,
                               const Failure& failure) {
  if (failure.sqlstate.empty()) return on_lost(std::move(batch), failure);
  if (is_other_server(failure)) {
    connection.close();
    ++doubts_;  // The other connections lead there, too.
  }
  if (may_be_another_store(failure)) ++doubts_;
  if (is_race(failure)) {
    std::vector<Waiting> late;
    for (Waiting& one : batch) {
      if (is_within(one, limits::store_repeat_max)) {
        ask_later(std::move(one));
      } else {
        late.push_back(std::move(one));
      }
    }
    return refuse(std::move(late), StoreError::Code::unavailable, failure_text(failure));
  }
  if (may_be_of_one_call(failure) && batch.size() > 1) {
    // One call fails the batch: each is sent alone.
    for (Waiting& one : batch) one.alone = true;
    return lanes_.put_back(std::move(batch));
  }
  if (is_damage(failure)) {
    for (Waiting& one : batch) {
      finish(one, {std::unexpected(StoreError{StoreError::Code::damaged,
                                              "the record is damaged: " + failure.message,
                                              id_in(one.call)})});
    }
    return;
  }
  const auto code = is_unstorable(failure) ? StoreError::Code::unstorable
                    : is_refusal(failure)  ? StoreError::Code::refused
                                           : StoreError::Code::unavailable;
  refuse(std::move(batch), code, is_refusal(failure) ? failure.message : failure_text(failure));
}

void CallScheduler::on_lost(std::vector<Waiting> batch, const Failure& failure) {
  std::vector<Waiting> again;
  for (Waiting& one : batch) {
    one.in_doubt |= failure.in_doubt && !traits_of(one.call).only_reads;
    const bool may_repeat = traits_of(one.call).is_repeatable || !failure.in_doubt;
    if (may_repeat && is_within(one, limits::store_repeat_max)) {
      again.push_back(std::move(one));
    } else {
      finish(one, {std::unexpected(error(
                      one.in_doubt ? StoreError::Code::in_doubt : StoreError::Code::unavailable,
                      failure.message))});
    }
  }
  lanes_.put_back(std::move(again));
}

}  // namespace idem::postgres
