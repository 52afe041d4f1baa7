#include <idem/asio.hpp>

#include "library/guarded.hpp"
#include "support/back_off.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <latch>

/// The guard for coroutines: a request has no thread of its own.
namespace idem::test {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;

/// Lets everything else on the executor have its turn.
awaitable<void> yield_turn() {
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::use_awaitable_t<> token;
  auto turn = boost::asio::post(executor, token);
  co_await std::move(turn);
}

class Awaitable : public Guarded {
 protected:
  Awaitable() { make_guard(commits_only()); }
  ~Awaitable() override {
    io_.reset();
    awaiting_.reset();
  }
  void make_guard(GuardOptions options) {
    awaiting_ = std::make_unique<AwaitableGuard>(*engine_, std::move(options));
  }
  static GuardOptions waiting() {
    GuardOptions options = commits_only();
    options.wait = 30s;
    return options;
  }

  /// Serves it on the context; the answer is there once that has run.
  template <class Handler>
  std::shared_ptr<Response> begin(const Request& request, Handler handler) {
    auto answer = std::make_shared<Response>(Response{0, {}, {}});
    auto serving = keep(*awaiting_, request, std::move(handler), answer);
    boost::asio::co_spawn(*io_, std::move(serving), boost::asio::detached);
    return answer;
  }
  template <class Handler>
  Response serve_here(const Request& request, Handler handler) {
    const auto answer = begin(request, std::move(handler));
    run();
    return *answer;
  }
  void run() {
    io_->restart();
    io_->run();
  }
  template <class Handler>
  static awaitable<void> keep(AwaitableGuard& guard, Request request, Handler handler,
                              std::shared_ptr<Response> answer) {
    auto serving = guard.serve(request, handler);
    Response response = co_await std::move(serving);
    *answer = std::move(response);
  }

  /// A handler that commits this.
  static auto committing(TransactionWork work) {
    return [work = std::move(work)](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
      auto committed = run.commit(work);
      Outcome outcome = co_await std::move(committed);
      co_return outcome;
    };
  }
  State state_of(const RecordId& id) { return record_of(id).state; }

  std::unique_ptr<boost::asio::io_context> io_ = std::make_unique<boost::asio::io_context>(1);
  std::unique_ptr<AwaitableGuard> awaiting_;
};

INSTANTIATE_TEST_SUITE_P(Stores, Awaitable, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Awaitable, S17_rows_and_answer_are_one_commit_and_every_retry_gets_the_answer) {
  const auto first = serve_here(payment("k"), committing(paying()));
  EXPECT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(field_of(first, "Idempotency-Outcome"), "stored");
  EXPECT_TRUE(field_of(first, "Idempotency-Expires"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(replays(first, serve_here(payment("k"), committing(paying()))));
  }
  EXPECT_TRUE(replays(first, serve(payment("k"), paying()))) << "by the same rules as Guard";
  EXPECT_EQ(code_of(serve_here(payment("k", 6), committing(paying()))), "key_reused");
  Request request = payment("k2");
  request.scope.clear();
  EXPECT_EQ(code_of(serve_here(request, committing(paying()))), "scope_missing");
  request = payment("k2");
  request.headers.pop_back();
  EXPECT_EQ(code_of(serve_here(request, committing(paying()))), "key_missing");
  EXPECT_EQ(payments(), 1);
}

TEST_P(Awaitable, V01_V12_of_many_on_one_thread_one_runs_and_the_loop_goes_on) {
  make_guard(waiting());
  constexpr int callers = 64;
  int runs = 0;
  int turns = 0;
  const TransactionWork work = paying();
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    ++runs;
    while (turns < 1'000) {
      ++turns;
      auto turn = yield_turn();
      co_await std::move(turn);
    }
    auto committed = run.commit(work);
    Outcome outcome = co_await std::move(committed);
    co_return outcome;
  };
  std::vector<std::shared_ptr<Response>> answers;
  for (int i = 0; i < callers; ++i) answers.push_back(begin(payment("k"), handler));
  run();
  std::set<std::string> bodies;
  int fresh = 0;
  for (const auto& answer : answers) {
    EXPECT_EQ(answer->status, 201) << answer->body;
    bodies.insert(answer->body);
    fresh += field_of(*answer, "Idempotent-Replayed") ? 0 : 1;
  }
  EXPECT_EQ(bodies.size(), 1U);
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(payments(), 1);
}

TEST_P(Awaitable, S07_a_waiter_past_its_deadline_gets_in_progress) {
  make_guard({.operation = "create-payment", .wait = 60ms});
  std::shared_ptr<Response> duplicate;
  const TransactionWork work = paying();
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    duplicate = begin(payment("k"), committing(work));
    while (duplicate->status == 0) {
      auto turn = yield_turn();
      co_await std::move(turn);
    }
    auto committed = run.commit(work);
    Outcome outcome = co_await std::move(committed);
    co_return outcome;
  };
  EXPECT_EQ(serve_here(payment("k"), handler).status, 201);
  EXPECT_EQ(code_of(*duplicate), "in_progress") << duplicate->body;
  EXPECT_EQ(payments(), 1);
}

// The work blocks until the loop has gone on.
TEST_P(Awaitable, S17_a_commit_does_not_run_on_the_loop) {
  std::latch gone_on(1);
  const auto loop = std::this_thread::get_id();
  const TransactionWork work = [&](Transaction& tx) {
    EXPECT_NE(std::this_thread::get_id(), loop);
    boost::asio::post(*io_, [&] { gone_on.count_down(); });
    gone_on.wait();
    return paying()(tx);
  };
  EXPECT_EQ(serve_here(payment("k"), committing(work)).status, 201);
}

TEST_P(Awaitable, S17_a_context_runs_for_as_long_as_something_is_served) {
  const auto answer = begin(payment("k"), committing(paying()));
  io_->run();
  EXPECT_EQ(answer->status, 201) << "it did not end while it waited for the store";
}

TEST_P(Awaitable, T57_an_exception_out_of_a_handler_is_unknown_and_never_run_again) {
  const auto throwing = [](const Request&, AsyncExecution&) -> awaitable<Outcome> {
    throw std::runtime_error("after the charge");
    co_return Response{};
  };
  const auto first = serve_here(payment("k"), throwing);
  EXPECT_EQ(first.status, 502);
  EXPECT_EQ(code_of(first), "outcome_unknown");
  EXPECT_EQ(code_of(serve_here(payment("k"), committing(paying()))), "outcome_unknown");
  EXPECT_EQ(payments(), 0);
}

TEST_P(Awaitable, S16_a_handlers_own_outcome_is_believed) {
  const auto returning = [](Outcome outcome) {
    return [outcome](const Request&, AsyncExecution&) -> awaitable<Outcome> { co_return outcome; };
  };
  const auto busy = serve_here(payment("k1"), returning(NotExecuted{{503, {}, "busy"}}));
  EXPECT_EQ(busy.body, "busy");
  EXPECT_EQ(field_of(busy, "Idempotency-Outcome"), "released");
  EXPECT_EQ(serve_here(payment("k1"), committing(paying())).status, 201);
  EXPECT_EQ(code_of(serve_here(payment("k2"), returning(OutcomeUnknown{}))), "outcome_unknown");
  EXPECT_EQ(code_of(serve_here(payment("k2"), committing(paying()))), "outcome_unknown");
  const auto declined = serve_here(payment("k3"), returning(Response{402, {}, "declined"}));
  EXPECT_TRUE(replays(declined, serve_here(payment("k3"), committing(paying()))));
  const auto failed = serve_here(payment("k4"), committing(paying(0)));
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(serve_here(payment("k4"), committing(paying())).status, 201);
  EXPECT_EQ(payments(), 2);
}

TEST_P(Awaitable, S17_an_exception_out_of_the_rows_leaves_none_and_the_handler_may_say_so) {
  const TransactionWork work = [](Transaction& tx) -> Outcome {
    tx.run("INSERT INTO payments VALUES ('p', 1)");
    throw std::runtime_error("of the business");
  };
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    std::string why;
    try {
      auto committed = run.commit(work);
      Outcome outcome = co_await std::move(committed);
      co_return outcome;
    } catch (const std::runtime_error& error) {
      why = error.what();
    }
    co_return NotExecuted{{500, {}, why}};
  };
  EXPECT_EQ(serve_here(payment("k"), handler).body, "of the business");
  EXPECT_EQ(payments(), 0);
  EXPECT_EQ(serve_here(payment("k"), committing(paying())).status, 201);
}

TEST_P(Awaitable, S12_an_answer_too_large_to_keep_is_given_once) {
  make_guard({.operation = "create-payment", .response_body_bytes_max = 100});
  const std::string large(101, 'x');
  const auto handler = [&](const Request&, AsyncExecution&) -> awaitable<Outcome> {
    Response answer{201, {}, large};
    co_return answer;
  };
  EXPECT_EQ(serve_here(payment("k"), handler).body, large);
  EXPECT_EQ(code_of(serve_here(payment("k"), handler)), "response_not_stored");
}

TEST_P(Awaitable, V27_the_lease_of_a_long_run_is_renewed) {
  make_guard({.operation = "create-payment", .lease = 3s});
  const TransactionWork work = paying();
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    const StoreTime first = record_of(run.id()).locked_until;
    Record now = record_of(run.id());
    while (now.state == State::in_progress && now.locked_until == first) {
      auto turn = yield_turn();
      co_await std::move(turn);
      now = record_of(run.id());
    }
    EXPECT_EQ(now.state, State::in_progress);
    EXPECT_GT(now.locked_until, first);
    EXPECT_GT(run.lease_left(), Millis{0});
    auto committed = run.commit(work);
    Outcome outcome = co_await std::move(committed);
    co_return outcome;
  };
  EXPECT_EQ(serve_here(payment("k"), handler).status, 201);
}

TEST_P(Awaitable, V10_a_caller_that_is_cancelled_changes_nothing) {
  boost::asio::cancellation_signal hung_up;
  bool goes_on = false;
  const TransactionWork work = paying();
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    hung_up.emit(boost::asio::cancellation_type::all);
    auto turn = yield_turn();
    co_await std::move(turn);
    goes_on = true;
    auto committed = run.commit(work);
    Outcome outcome = co_await std::move(committed);
    co_return outcome;
  };
  const auto answer = std::make_shared<Response>();
  auto serving = keep(*awaiting_, payment("k"), handler, answer);
  boost::asio::co_spawn(*io_, std::move(serving),
                        boost::asio::bind_cancellation_slot(hung_up.slot(), boost::asio::detached));
  run();
  EXPECT_TRUE(goes_on);
  EXPECT_EQ(answer->status, 201) << answer->body;
  EXPECT_TRUE(replays(*answer, serve_here(payment("k"), committing(paying()))));
  EXPECT_EQ(payments(), 1);
}

// ---- contexts that end in the middle ----

TEST_P(Awaitable, T57_a_context_that_ends_in_the_middle_of_a_handler_leaves_an_unknown) {
  RecordId id;
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    id = run.id();
    io_->stop();
    auto turn = yield_turn();
    co_await std::move(turn);
    ADD_FAILURE() << "it went on";
    co_return Response{};
  };
  EXPECT_EQ(serve_here(payment("k"), handler).status, 0);
  EXPECT_EQ(state_of(id), State::in_progress) << "stopped is not gone: it may go on";
  io_ = std::make_unique<boost::asio::io_context>(1);
  while (state_of(id) == State::in_progress) back_off();
  EXPECT_EQ(state_of(id), State::unknown);
  EXPECT_EQ(code_of(serve_here(payment("k"), committing(paying()))), "outcome_unknown");
  engine_.reset();  // And waits for nothing.
}

TEST_P(Awaitable, S16_a_handler_that_was_not_begun_when_its_context_ended_is_released) {
  begin(payment("k"), committing(paying()));
  io_->poll_one();  // It asks; nobody is there to receive the answer, however early it comes.
  io_ = std::make_unique<boost::asio::io_context>(1);
  make_guard(waiting());
  auto answer = serve_here(payment("k"), committing(paying()));
  while (answer.status != 201) answer = serve_here(payment("k"), committing(paying()));
  EXPECT_FALSE(field_of(answer, "Idempotent-Replayed"));
  EXPECT_EQ(payments(), 1);
}

// The work refers to what the coroutine has, which goes with the context.
TEST_P(Awaitable, S17_a_context_ends_after_the_transactions_of_its_coroutines) {
  RecordId id;
  std::latch working(1);
  std::latch ending(1);
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    id = run.id();
    std::string of_the_frame = "a payment whose number does not fit into a small string";
    const TransactionWork work = [&](Transaction& tx) -> Outcome {
      working.count_down();
      ending.wait();
      std::this_thread::yield();
      tx.run("INSERT INTO payments VALUES ($1, 1)", {of_the_frame});
      return Response{201, {}, of_the_frame};
    };
    auto committed = run.commit(work);
    Outcome outcome = co_await std::move(committed);
    co_return outcome;
  };
  begin(payment("k"), handler);
  std::thread stops([&] {
    working.wait();
    io_->stop();
  });
  run();
  stops.join();
  std::thread ends([&] { ending.count_down(); });
  io_ = std::make_unique<boost::asio::io_context>(1);
  ends.join();
  while (state_of(id) != State::completed) back_off();
  EXPECT_EQ(payments(), 1);
  const auto retry = serve_here(payment("k"), committing(paying()));
  EXPECT_EQ(retry.status, 201);
  EXPECT_EQ(field_of(retry, "Idempotent-Replayed"), "true");
}

TEST_P(Awaitable, P22_an_engine_ends_once_nothing_is_served_any_more) {
  std::latch serving(1);
  bool is_ending = false;
  const TransactionWork work = paying();
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    serving.count_down();
    while (!is_ending) {
      auto turn = yield_turn();
      co_await std::move(turn);
    }
    auto committed = run.commit(work);
    Outcome outcome = co_await std::move(committed);
    co_return outcome;
  };
  const auto answer = begin(payment("k"), handler);
  std::thread ends([&] {
    serving.wait();
    boost::asio::post(*io_, [&] { is_ending = true; });
    engine_.reset();
  });
  run();
  ends.join();
  EXPECT_EQ(answer->status, 201) << answer->body;
  engine_ = std::make_unique<Engine>(open());
  EXPECT_EQ(payments(), 1);
}

TEST_P(Awaitable, P22_an_engine_waits_for_a_stopped_context_no_longer_than_a_run_may_take) {
  make_guard({.operation = "create-payment", .run_max = 300ms});
  RecordId id;
  std::unique_ptr<AsyncExecution> unused;
  const auto handler = [&](const Request&, AsyncExecution& run) -> awaitable<Outcome> {
    id = run.id();
    io_->stop();
    auto turn = yield_turn();
    co_await std::move(turn);
    co_return Response{};
  };
  const auto answer = begin(payment("k"), handler);
  run();
  engine_.reset();
  io_->restart();
  io_->run();  // The rest of it goes on, and finds no asker.
  EXPECT_EQ(code_of(*answer), "outcome_unknown");
  io_.reset();
  engine_ = std::make_unique<Engine>(open());
  EXPECT_EQ(state_of(id), State::unknown);
}

// ---- reserve, rows and answer in one commit; many threads ----

TEST_P(Awaitable, S17_reserve_rows_and_answer_may_be_one_commit) {
  make_guard(waiting());
  const auto pay = [](AwaitableGuard& guard, Request request, TransactionWork work,
                      std::shared_ptr<Response> answer) -> awaitable<void> {
    auto serving = guard.serve_in_transaction(request, work);
    Response response = co_await std::move(serving);
    *answer = std::move(response);
  };
  const auto ask = [&](const Request& request, const TransactionWork& work) {
    auto answer = std::make_shared<Response>();
    auto serving = pay(*awaiting_, request, work, answer);
    boost::asio::co_spawn(*io_, std::move(serving), boost::asio::detached);
    return answer;
  };
  const auto failed = ask(payment("k"), paying(0));
  run();
  EXPECT_EQ(failed->status, 500);
  std::vector<std::shared_ptr<Response>> answers;
  for (int i = 0; i < 64; ++i) answers.push_back(ask(payment("k"), paying()));
  run();
  int fresh = 0;
  for (const auto& answer : answers) {
    EXPECT_EQ(answer->status, 201) << answer->body;
    fresh += field_of(*answer, "Idempotent-Replayed") ? 0 : 1;
  }
  EXPECT_EQ(fresh, 1);
  const auto misuse = ask(payment("k", 6), paying());
  run();
  EXPECT_EQ(code_of(*misuse), "key_reused");
  EXPECT_EQ(payments(), 1);
}

TEST_P(Awaitable, V01_strands_of_many_threads_pay_each_key_once) {
  make_guard(waiting());
  constexpr int keys = 20;
  constexpr int callers = 6;
  std::vector<std::shared_ptr<Response>> answers;
  {
    boost::asio::thread_pool threads(4);
    for (int i = 0; i < keys * callers; ++i) {
      answers.push_back(std::make_shared<Response>());
      const auto strand = boost::asio::make_strand(threads);
      auto serving = keep(*awaiting_, payment(fmt::format("k{}", i % keys)), committing(paying()),
                          answers.back());
      boost::asio::co_spawn(strand, std::move(serving), boost::asio::detached);
    }
    threads.join();
  }
  int fresh = 0;
  for (const auto& answer : answers) {
    EXPECT_EQ(answer->status, 201) << answer->body;
    fresh += field_of(*answer, "Idempotent-Replayed") ? 0 : 1;
  }
  EXPECT_EQ(fresh, keys);
  EXPECT_EQ(payments(), keys);
}

}  // namespace
}  // namespace idem::test
