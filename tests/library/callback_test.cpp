#include <idem/callback_guard.hpp>

#include "library/guarded.hpp"
#include "store/faulty.hpp"
#include "store/stores.hpp"

#include <random>

/// The guard that calls back, over a store that loses and delays: each request is answered once,
/// and its work is done once at most.
namespace idem::test {
namespace {

using namespace std::chrono_literals;

struct CallbackService {
  explicit CallbackService(FaultPlan plan) {
    auto inner = open_memory({});
    auto faulty = make_faulty(std::move(inner.value()), std::move(plan));
    engine = std::make_unique<Engine>(std::move(faulty));
    guard = std::make_unique<CallbackGuard>(*engine, GuardOptions{.operation = "pay"});
  }
  std::unique_ptr<Engine> engine;
  std::unique_ptr<CallbackGuard> guard;
};

std::future<Response> asked(CallbackGuard& guard, const Request& request, CallbackHandler handler) {
  auto promise = std::make_shared<std::promise<Response>>();
  guard.serve(request, std::move(handler),
              [promise](Response answer) { promise->set_value(std::move(answer)); });
  return promise->get_future();
}

CallbackHandler returning(Outcome outcome) {
  return
      [outcome = std::move(outcome)](std::shared_ptr<HandlerTurn> turn) { turn->finish(outcome); };
}

TEST(Callback, S04_lost_calls_and_replies_cost_no_answer_and_repeat_no_work) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  fmt::print("seed={}\n", seed);
  FaultPlan plan;
  plan.seed = seed;
  plan.lose_call = 100;
  plan.lose_reply = 150;
  CallbackService service(std::move(plan));
  std::map<std::string, std::atomic<int>> runs;
  std::vector<std::future<Response>> answers;
  for (int i = 0; i < 300; ++i) {
    const auto key = fmt::format("k{}", i % 60);
    auto& count = runs[key];
    answers.push_back(
        asked(*service.guard, payment(key), [&count](std::shared_ptr<HandlerTurn> turn) {
          ++count;
          turn->finish(Response{201, {}, "done"});
        }));
  }
  int done = 0;
  for (auto& answer : answers) {
    const Response response = answer.get();
    done += response.status == 201 ? 1 : 0;
    EXPECT_EQ(response.status == 201, response.body == "done");
  }
  service.engine.reset();
  EXPECT_GT(done, 0);
  for (const auto& [key, count] : runs) EXPECT_LE(count, 1) << key;
}

// The duty goes on after the client was answered: 10 seconds.
TEST(Callback, S04_an_attempt_not_settled_in_time_is_settled_later) {
  std::atomic<bool> is_away = true;
  FaultPlan plan;
  plan.decide = [&](const StoreCall& call, std::uint64_t) -> std::optional<Fault> {
    if (std::holds_alternative<Complete>(call) && is_away) return Fault::refuse;
    return Fault::none;
  };
  CallbackService service(std::move(plan));
  const auto first =
      asked(*service.guard, payment("k"), returning(Response{201, {}, "done"})).get();
  EXPECT_EQ(first.status, 504) << first.body;
  EXPECT_EQ(code_of(first), "outcome_unknown");
  is_away = false;
  Response retry;
  while (retry.status != 201) {
    retry = asked(*service.guard, payment("k"), returning(NotExecuted{})).get();
    ASSERT_TRUE(retry.status == 201 || code_of(retry) == "in_progress") << retry.body;
  }
  EXPECT_EQ(retry.body, "done");
}

TEST(Callback, T57_a_turn_that_is_dropped_or_answers_twice_counts_once) {
  CallbackService service({});
  auto dropped = asked(*service.guard, payment("k1"), [](std::shared_ptr<HandlerTurn>) {});
  EXPECT_EQ(code_of(dropped.get()), "outcome_unknown");
  std::shared_ptr<HandlerTurn> kept;
  auto twice = asked(*service.guard, payment("k2"), [&](std::shared_ptr<HandlerTurn> turn) {
    turn->finish(Response{201, {}, "first"});
    turn->finish(NotExecuted{});
    turn->threw();
    kept = turn;
  });
  EXPECT_EQ(twice.get().body, "first");
  EXPECT_EQ(asked(*service.guard, payment("k2"), returning(Response{})).get().body, "first");
  service.engine.reset();
  // It outlived the engine.
  EXPECT_EQ(kept->request().scope, "acme");
  bool was_answered = false;
  kept->commit([](Transaction&) -> Outcome { return Response{}; },
               [&](const std::exception_ptr& thrown, const Outcome& outcome) {
                 was_answered = true;
                 EXPECT_EQ(thrown, nullptr);
                 EXPECT_TRUE(std::holds_alternative<NotCommitted>(outcome));
               });
  EXPECT_TRUE(was_answered);
  kept->finish(Response{});
}

TEST(Callback, S06_a_refusal_arrives_before_serve_returns_and_a_guard_may_go_first) {
  CallbackService service({});
  Request request = payment("k");
  request.scope.clear();
  auto refused = asked(*service.guard, request, returning(Response{}));
  ASSERT_EQ(refused.wait_for(0s), std::future_status::ready);
  EXPECT_EQ(code_of(refused.get()), "scope_missing");
  std::shared_ptr<HandlerTurn> kept;
  std::promise<void> begun;
  auto answer = asked(*service.guard, payment("k"), [&](std::shared_ptr<HandlerTurn> turn) {
    kept = std::move(turn);
    begun.set_value();
  });
  begun.get_future().wait();
  service.guard.reset();
  kept->finish(Response{201, {}, "done"});
  EXPECT_EQ(answer.get().body, "done");
}

}  // namespace
}  // namespace idem::test
