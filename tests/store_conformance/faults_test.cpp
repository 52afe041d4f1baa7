#include "store/faulty.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>

#include <map>
#include <random>
#include <thread>

/// protocol.md §4 through a store that loses, refuses, delays and reorders.
namespace idem::test {
namespace {

/// Asks once, letting go of what is delayed until the answer is there.
template <class Verb>
std::expected<typename Verb::Reply, StoreError> ask_once(FaultyStore& store, Verb verb) {
  using Result = std::expected<typename Verb::Reply, StoreError>;
  auto promise = std::make_shared<std::promise<Result>>();
  auto reply = promise->get_future();
  idem::ask(store, std::move(verb),
            [promise](Result result) { promise->set_value(std::move(result)); });
  while (reply.wait_for(0s) != std::future_status::ready) {
    store.flush();
    std::this_thread::yield();
  }
  return reply.get();
}

/// §4's duty of an owner: the same call with the same token, until the answer is definite.
template <class Verb>
typename Verb::Reply settle(FaultyStore& store, const Verb& verb) {
  for (int round = 0; round < 1'000; ++round) {
    auto reply = ask_once(store, verb);
    if (reply) return std::move(*reply);
    EXPECT_NE(reply.error().code, StoreError::Code::refused) << reply.error().detail;
  }
  ADD_FAILURE() << "never an answer";
  return {};
}

/// An id of its own for each number: a late call meets the record of its own key only.
Reserve faulty_reserve(int number, int token_number, const Store& store) {
  Reserve verb = a_reserve(1, token_number);
  verb.id.bytes[0] = static_cast<std::uint8_t>(number >> 8);
  verb.id.bytes[1] = static_cast<std::uint8_t>(number);
  verb.generation = store.identity().generation;
  return verb;
}

FaultPlan rough(std::uint64_t seed) {
  FaultPlan plan;
  plan.seed = seed;
  plan.refuse = 100;
  plan.lose_call = 100;
  plan.lose_reply = 150;
  plan.delay_call = 100;
  plan.delay_reply = 100;
  return plan;
}

TEST_P(StoreConformance, S04_repeating_with_the_same_token_settles_whatever_was_lost) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto faulty = make_faulty(open_another(fmt::format("faulty-{}", seed)), rough(seed));
    std::mt19937_64 random(seed);
    Fence last = 0;
    for (int number = 0; number < 100; ++number) {
      const auto outcome = settle(*faulty, faulty_reserve(number, 1, *faulty));
      ASSERT_TRUE(is<Execute>(outcome)) << describe(outcome);
      const Execute won = std::get<Execute>(outcome);
      EXPECT_FALSE(won.again) << "one attempt per key, however often it was asked";
      EXPECT_GT(won.attempt.fence, last);
      last = won.attempt.fence;
      const bool has_fence = random() % 2 != 0;
      const auto by_owner = [&](auto verb) { return has_fence ? verb : by_token(verb); };
      State ended{};
      OwnerReply reply;
      switch (random() % 3) {
        case 0:
          reply = settle(*faulty, by_owner(a_complete(won)));
          ended = State::completed;
          break;
        case 1:
          reply = settle(*faulty, by_owner(a_release(won)));
          ended = State::failed_retryable;
          break;
        default:
          reply = settle(*faulty, by_owner(a_mark_unknown(won)));
          ended = State::unknown;
          break;
      }
      EXPECT_NE(reply.verdict, Verdict::stale);
      EXPECT_EQ(reply.state, ended);
      EXPECT_EQ(settle(*faulty, Find{won.id})->state, ended);
    }
  }
}

TEST_P(StoreConformance, S04_of_two_duplicates_one_executes_whatever_goes_wrong) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    FaultPlan plan = rough(seed);
    plan.late_call = 100;
    const auto faulty = make_faulty(open_another(fmt::format("pair-{}", seed)), plan);
    for (int number = 0; number < 60; ++number) {
      std::atomic<int> executions = 0;
      const auto caller = [&](int token_number) {
        const auto outcome = settle(*faulty, faulty_reserve(number, token_number, *faulty));
        if (!is<Execute>(outcome)) return;
        ++executions;
        settle(*faulty, a_complete(std::get<Execute>(outcome)));
      };
      {
        const std::jthread one(caller, 1);
        const std::jthread two(caller, 2);
      }
      EXPECT_LE(executions, 1) << "key " << number << " seed " << seed;
      // None at all: one's reserve came late, after the other's answer had been "in progress".
      const auto record = settle(*faulty, Find{faulty_reserve(number, 1, *faulty).id});
      ASSERT_TRUE(record);
      EXPECT_EQ(record->state, executions == 1 ? State::completed : State::in_progress);
    }
  }
}

TEST_P(StoreConformance, T16_a_settle_that_failed_keeps_the_claim) {
  FaultPlan plan;
  int completes = 0;
  plan.decide = [&](const StoreCall& call, std::uint64_t) -> std::optional<Fault> {
    if (!std::holds_alternative<Complete>(call)) return Fault::none;
    return ++completes == 1 ? Fault::refuse : Fault::lose_reply;
  };
  const auto faulty = make_faulty(open_another("t16"), plan);
  const auto won = std::get<Execute>(settle(*faulty, faulty_reserve(1, 1, *faulty)));
  const auto first = ask_once(*faulty, a_complete(won));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, StoreError::Code::unavailable);
  EXPECT_TRUE(is<InProgress>(settle(*faulty, faulty_reserve(1, 2, *faulty))))
      << "nobody else may run it";
  const auto second = ask_once(*faulty, a_complete(won));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, StoreError::Code::in_doubt);
  EXPECT_TRUE(is<Replay>(settle(*faulty, faulty_reserve(1, 2, *faulty)))) << "it had been done";
}

TEST_P(StoreConformance, S04_delayed_calls_overtake_each_other) {
  FaultPlan plan;
  plan.decide = [](const StoreCall& call, std::uint64_t) -> std::optional<Fault> {
    return std::holds_alternative<Release>(call) ? Fault::delay_call : Fault::none;
  };
  const auto faulty = make_faulty(open_another("late"), plan);
  const auto won = std::get<Execute>(settle(*faulty, faulty_reserve(1, 1, *faulty)));
  std::promise<Verdict> late;
  idem::ask(*faulty, a_release(won), [&](auto reply) { late.set_value(reply->verdict); });
  EXPECT_EQ(settle(*faulty, a_complete(won)).verdict, Verdict::done);
  faulty->flush();
  EXPECT_EQ(late.get_future().get(), Verdict::settled) << "the first ending stays";
}

TEST(Faulty, the_same_seed_gives_the_same_faults) {
  const auto run = [](std::uint64_t seed) {
    TestClock clock;
    const auto faulty = make_faulty(open_by_url("memory:", clock), rough(seed));
    std::string seen;
    for (int number = 0; number < 200; ++number) {
      const auto reply = ask_once(*faulty, faulty_reserve(number, 1, *faulty));
      seen += reply ? 'x' : reply.error().code == StoreError::Code::in_doubt ? '?' : '!';
    }
    return seen;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST(Faulty, the_destructor_answers_all_that_is_delayed) {
  TestClock clock;
  std::atomic<int> answered = 0;
  {
    FaultPlan plan;
    plan.decide = [](const StoreCall&, std::uint64_t number) {
      return std::optional(number % 2 == 0 ? Fault::delay_call : Fault::delay_reply);
    };
    plan.delay_calls_max = 1'000'000;
    const auto faulty = make_faulty(open_by_url("memory:", clock), plan);
    for (int i = 0; i < 50; ++i) faulty->call(Find{key(i)}, [&](StoreResult) { ++answered; });
  }
  EXPECT_EQ(answered, 50);
}

}  // namespace
}  // namespace idem::test
