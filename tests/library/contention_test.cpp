#include "library/guarded.hpp"

#include <array>

/// Transactions that PostgreSQL ends in favour of others: run again, within bounds.
namespace idem::test {
namespace {

class Contended : public Guarded {
 protected:
  Contended() {
    const auto made =
        engine_->transactions()->run("INSERT INTO payments VALUES ('a', 1), ('b', 1)");
    EXPECT_TRUE(made) << made.error();
  }
  static void book(Transaction& tx, const std::string& payment) {
    tx.run("UPDATE payments SET amount = amount + 1 WHERE id = $1", {payment});
  }
  /// Throws where the statement answers no row.
  static void book_and_read(Transaction& tx, const std::string& payment) {
    const SqlRows rows =
        tx.run("UPDATE payments SET amount = amount + 1 WHERE id = $1 RETURNING amount", {payment});
    (void)rows.at(0);
  }
  std::int64_t booked() {
    const auto rows = engine_->transactions()->run("SELECT sum(amount) FROM payments");
    return std::get<std::int64_t>(rows.value().at(0).at(0)) - 2;
  }

  /// Two works, each of which has what the other one wants next. How often they ran.
  template <class Serve>
  int meet_in_a_ring(Serve serve, void (*book_one)(Transaction&, const std::string&) = book) {
    std::latch both_hold(2);
    std::array<std::latch, 2> is_over{std::latch(1), std::latch(1)};
    std::atomic<int> runs = 0;
    std::vector<std::thread> threads;
    for (const bool is_first : {true, false}) {
      threads.emplace_back([&, is_first] {
        bool has_met = false;
        const TransactionWork work = [&](Transaction& tx) -> Outcome {
          ++runs;
          // The one that gave way holds nothing now; on a busy machine it would meet the other
          // again.
          if (has_met) is_over[is_first ? 1 : 0].wait();
          book_one(tx, is_first ? "a" : "b");
          if (!std::exchange(has_met, true)) both_hold.arrive_and_wait();
          book_one(tx, is_first ? "b" : "a");
          return Response{201, {}, is_first ? "first" : "second"};
        };
        const Response answer = serve(payment(is_first ? "k1" : "k2"), work);
        is_over[is_first ? 0 : 1].count_down();
        EXPECT_EQ(answer.status, 201) << answer.body;
        EXPECT_EQ(answer.body, is_first ? "first" : "second");
      });
    }
    for (auto& one : threads) one.join();
    return runs;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, Contended, testing::Values("postgres"),
                         [](const auto& kind) { return kind.param; });

// It was 502 and unknown for ever: nothing tells the guard that a handler did nothing before.
TEST_P(Contended, T57_S17_of_two_handlers_in_a_deadlock_both_commit) {
  Guard charging(*engine_, {.operation = "charge"});
  const int runs = meet_in_a_ring([&](const Request& request, const TransactionWork& work) {
    return charging.serve(request,
                          [&](const Request&, Execution& run) { return run.commit(work); });
  });
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(booked(), 4);
}

// It was 503 store_unavailable.
TEST_P(Contended, S17_of_two_works_in_one_commit_and_in_a_deadlock_both_commit) {
  const int runs = meet_in_a_ring([&](const Request& request, const TransactionWork& work) {
    return guard_->serve_in_transaction(request, work);
  });
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(booked(), 4);
}

// Its exception, for want of the row, came out instead: 502 and unknown for ever, or 500.
TEST_P(Contended, T57_S17_a_work_that_throws_as_a_deadlock_left_it_no_row_is_run_again) {
  Guard charging(*engine_, {.operation = "charge"});
  const int in_commit = meet_in_a_ring(
      [&](const Request& request, const TransactionWork& work) {
        return charging.serve(request,
                              [&](const Request&, Execution& run) { return run.commit(work); });
      },
      book_and_read);
  EXPECT_EQ(in_commit, 3);
  EXPECT_EQ(booked(), 4);
  const int in_one_commit = meet_in_a_ring(
      [&](const Request& request, const TransactionWork& work) {
        return guard_->serve_in_transaction(request, work);
      },
      book_and_read);
  EXPECT_EQ(in_one_commit, 3);
  EXPECT_EQ(booked(), 8);
}

// It was run again, with whatever it does outside; and where it was not, 40003, it was released.
TEST_P(Contended, T57_S17_work_that_reports_unknown_is_not_run_again) {
  int runs = 0;
  for (const std::string& sqlstate : {std::string("40P01"), std::string("40003")}) {
    const TransactionWork work = [&](Transaction& tx) -> Outcome {
      ++runs;
      book(tx, "a");
      tx.run(fmt::format("DO $$ BEGIN RAISE EXCEPTION 'as it were' USING ERRCODE = '{}'; END $$",
                         sqlstate));
      return OutcomeUnknown{"charged", "ch_1"};
    };
    for (int i = 0; i < 2; ++i) {
      const auto answer = serve(payment("k1-" + sqlstate), work);
      EXPECT_EQ(code_of(answer), "outcome_unknown") << sqlstate << answer.body;
    }
    EXPECT_EQ(std::exchange(runs, 0), 1) << sqlstate;
    for (int i = 0; i < 2; ++i) {
      const auto answer = guard_->serve_in_transaction(payment("k2-" + sqlstate), work);
      EXPECT_EQ(code_of(answer), "outcome_unknown") << sqlstate << answer.body;
    }
    EXPECT_EQ(std::exchange(runs, 0), 1) << sqlstate;
  }
  EXPECT_EQ(booked(), 0);
}

TEST_P(Contended, S17_a_serialization_failure_is_run_again) {
  int runs = 0;
  const auto answer = serve(payment("k"), [&](Transaction& tx) -> Outcome {
    book(tx, "a");
    if (++runs < 3) {
      tx.run("DO $$ BEGIN RAISE EXCEPTION 'as it were' USING ERRCODE = '40001'; END $$");
    }
    return Response{201, {}, fmt::format("run {}", runs)};
  });
  EXPECT_EQ(answer.body, "run 3");
  EXPECT_EQ(booked(), 1) << "the runs before left nothing";
}

// 40003: the server does not know whether it committed.
TEST_P(Contended, S17_work_that_may_have_been_committed_is_not_run_again) {
  int runs = 0;
  const auto answer = serve(payment("k"), [&](Transaction& tx) -> Outcome {
    ++runs;
    tx.run("DO $$ BEGIN RAISE EXCEPTION 'as it were' USING ERRCODE = '40003'; END $$");
    return Response{201, {}, "paid"};
  });
  EXPECT_EQ(answer.status, 500) << answer.body;
  EXPECT_EQ(runs, 1);
}

TEST_P(Contended, S17_a_lock_that_stays_held_is_reported_with_its_sqlstate_and_the_retry_runs) {
  Psql rival(shared_->database());
  rival.run("BEGIN; UPDATE payments SET amount = 1 WHERE id = 'a'");
  int runs = 0;
  const TransactionWork work = [&](Transaction& tx) -> Outcome {
    ++runs;
    tx.run("SET LOCAL lock_timeout = '5ms'");
    book(tx, "a");
    return Response{201, {}, "booked"};
  };
  Guard charging(*engine_, {.operation = "charge"});
  const auto first = charging.serve(payment("k"), [&](const Request&, Execution& run) -> Outcome {
    const Outcome outcome = run.commit(work);
    const auto* const failed = std::get_if<NotCommitted>(&outcome);
    EXPECT_NE(failed, nullptr);
    if (failed == nullptr) return outcome;
    EXPECT_EQ(failed->sqlstate, "55P03");
    EXPECT_NE(failed->why.find("lock timeout"), std::string::npos) << failed->why;
    EXPECT_FALSE(failed->in_doubt);
    return NotExecuted{{503, {}, "busy"}};
  });
  EXPECT_EQ(first.body, "busy");
  EXPECT_EQ(runs, limits::transaction_tries_max);
  const auto second = guard_->serve_in_transaction(payment("k"), work);
  EXPECT_EQ(second.status, 500) << second.body;
  EXPECT_EQ(field_of(second, "Idempotency-Outcome"), "released") << "and not store_unavailable";
  rival.run("ROLLBACK");
  EXPECT_EQ(
      charging.serve(payment("k"), [&](const Request&, Execution& run) { return run.commit(work); })
          .body,
      "booked");
  EXPECT_EQ(guard_->serve_in_transaction(payment("k"), work).body, "booked");
  EXPECT_EQ(booked(), 2);
}

}  // namespace
}  // namespace idem::test
