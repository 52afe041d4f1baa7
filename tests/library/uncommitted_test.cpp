#include <idem/callback_guard.hpp>

#include "library/guarded.hpp"

/// A handler that answers as if its rows were there, when they are not.
namespace idem::test {
namespace {

using Uncommitted = Guarded;

INSTANTIATE_TEST_SUITE_P(Stores, Uncommitted, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

const Response paid{201, {}, "paid"};

// It was stored: 201 with no rows, for every retry.
TEST_P(Uncommitted, T57_S17_an_answer_behind_a_commit_that_failed_is_not_stored) {
  const auto careless = [](const Request&, Execution& run) -> Outcome {
    (void)run.commit(paying(0));
    return paid;
  };
  const auto first = guard_->serve(payment("k"), careless);
  EXPECT_EQ(first.status, 500) << first.body;
  EXPECT_EQ(field_of(first, "Idempotency-Outcome"), "released");
  EXPECT_EQ(serve(payment("k"), paying()).status, 201) << "nothing was there, so the retry ran";
  EXPECT_EQ(payments(), 1);

  Guard charging(*engine_, {.operation = "charge"});
  const auto charged = charging.serve(payment("k"), careless);
  EXPECT_EQ(charged.status, 502) << charged.body;
  EXPECT_EQ(code_of(charged), "outcome_unknown") << "a charge may lie before it";
  EXPECT_EQ(payments(), 1);
}

TEST_P(Uncommitted, T57_S17_nor_behind_one_that_threw_or_that_its_work_gave_up) {
  const auto behind = [&](const char* key, const TransactionWork& work) {
    return guard_->serve(payment(key), [&](const Request&, Execution& run) -> Outcome {
      try {
        (void)run.commit(work);
      } catch (const std::runtime_error&) {
      }
      return paid;
    });
  };
  const auto throwing = [](Transaction&) -> Outcome {
    throw std::runtime_error("of the business");
  };
  const auto giving_up = [](Transaction&) -> Outcome { return NotExecuted{{409, {}, "no"}}; };
  for (const auto& answer : {behind("k1", throwing), behind("k2", giving_up)}) {
    EXPECT_EQ(field_of(answer, "Idempotency-Outcome"), "released") << answer.body;
  }
  EXPECT_EQ(code_of(behind("k3", [](Transaction&) -> Outcome { return OutcomeUnknown{}; })),
            "outcome_unknown")
      << "an unknown outcome is not released";
  EXPECT_EQ(payments(), 0);
}

TEST_P(Uncommitted, T57_S17_nor_by_a_guard_that_calls_back) {
  CallbackGuard guard(*engine_, commits_only());
  std::promise<Response> answered;
  guard.serve(
      payment("k"),
      [](std::shared_ptr<HandlerTurn> turn) {
        turn->commit(paying(0), [turn](auto, Outcome) { turn->finish(paid); });
      },
      [&](Response answer) { answered.set_value(std::move(answer)); });
  const Response answer = answered.get_future().get();
  EXPECT_EQ(answer.status, 500) << answer.body;
  EXPECT_EQ(field_of(answer, "Idempotency-Outcome"), "released");
  EXPECT_EQ(payments(), 0);
}

// It was stored: the commit had not ended, so it had not failed.
TEST_P(Uncommitted, T57_S17_nor_while_its_commit_is_under_way) {
  CallbackGuard guard(*engine_, commits_only());
  std::latch finished(1);
  std::promise<void> ended;
  std::promise<Response> answered;
  guard.serve(
      payment("k"),
      [&](const std::shared_ptr<HandlerTurn>& turn) {
        const TransactionWork work = [&](Transaction& tx) -> Outcome {
          finished.wait();
          return paying(0)(tx);
        };
        turn->commit(work, [&](auto, Outcome) { ended.set_value(); });
        turn->finish(paid);
        finished.count_down();
      },
      [&](Response answer) { answered.set_value(std::move(answer)); });
  const Response answer = answered.get_future().get();
  ended.get_future().wait();
  EXPECT_EQ(code_of(answer), "outcome_unknown") << answer.status << answer.body;
  EXPECT_EQ(code_of(serve(payment("k"), paying())), "outcome_unknown") << "and not released";
  EXPECT_EQ(payments(), 0);
}

TEST_P(Uncommitted, S17_a_refusal_is_stored_by_a_commit_of_its_own_and_the_handler_knows_why) {
  const auto refusing = [](const Request&, Execution& run) -> Outcome {
    Outcome outcome = run.commit([](Transaction& tx) -> Outcome {
      tx.run("INSERT INTO payments VALUES ('p', 1)");
      tx.run("INSERT INTO payments VALUES ('p', 1)");
      return paid;
    });
    const auto* const failed = std::get_if<NotCommitted>(&outcome);
    if (failed == nullptr || failed->sqlstate != "23505") {
      ADD_FAILURE() << (failed != nullptr ? failed->sqlstate + failed->why : "committed");
      return outcome;
    }
    EXPECT_FALSE(failed->why.empty());
    return run.commit([](Transaction&) -> Outcome { return Response{402, {}, "paid before"}; });
  };
  const auto first = guard_->serve(payment("k"), refusing);
  EXPECT_EQ(first.status, 402) << first.body;
  EXPECT_TRUE(replays(first, guard_->serve(payment("k"), refusing)));
  EXPECT_EQ(payments(), 0);
}

// It went to the store, which refused it again and again.
TEST_P(Uncommitted, P22_an_answer_without_a_final_status_is_nobodys_answer) {
  for (const int status : {0, 100, 199, 600, -1}) {
    const auto key = fmt::format("k{}", status);
    const auto rows = serve(payment(key), paying(5, status));
    EXPECT_EQ(rows.status, 500) << status << rows.body;
    EXPECT_EQ(field_of(rows, "Idempotency-Outcome"), "released");
    const auto one = guard_->serve_in_transaction(payment(key), paying(5, status));
    EXPECT_EQ(one.status, 500) << status << one.body;
    const auto bare = guard_->serve(
        payment(key), [&](const Request&, Execution&) -> Outcome { return Response{status}; });
    EXPECT_EQ(code_of(bare), "outcome_unknown") << status << bare.body;
  }
  EXPECT_EQ(payments(), 0);
}

}  // namespace
}  // namespace idem::test
