#include "library/guarded.hpp"
#include "support/back_off.hpp"

namespace idem::test {
namespace {

using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(Stores, Guarded, testing::Values("sqlite", "sqlite_own", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Guarded, S17_rows_and_answer_are_one_commit_and_every_retry_gets_the_answer) {
  const auto first = serve(payment("k"), paying());
  EXPECT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(field_of(first, "Idempotency-Outcome"), "stored");
  EXPECT_FALSE(field_of(first, "Idempotent-Replayed"));
  EXPECT_TRUE(field_of(first, "Idempotency-Expires"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(replays(first, serve(payment("k"), paying())));
  EXPECT_EQ(payments(), 1);
  guard_.reset();
  engine_.reset();
  engine_ = std::make_unique<Engine>(open());
  guard_ = std::make_unique<Guard>(*engine_, commits_only());
  EXPECT_TRUE(replays(first, serve(payment("k"), paying())));
  EXPECT_EQ(payments(), 1);
}

TEST_P(Guarded, S06_a_request_without_valid_key_or_scope_is_refused_before_any_work) {
  const auto refused = [&](const Request& request, int status, std::string_view code) {
    const auto answer = serve(request, paying());
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_EQ(code_of(answer), code);
  };
  Request request = payment("k");
  request.scope.clear();
  refused(request, 401, "scope_missing");
  request = payment("k");
  request.headers.pop_back();
  refused(request, 400, "key_missing");
  refused(payment("a,b"), 400, "key_invalid");
  request = payment("k");
  request.headers.push_back({"idempotency-key", "k"});
  refused(request, 400, "key_invalid");
  EXPECT_EQ(payments(), 0);
}

TEST_P(Guarded, V02_V03_V06_another_request_is_misuse_and_another_tenant_or_operation_another_key) {
  const auto first = serve(payment("k"), paying());
  const auto other = serve(payment("k", 6), paying());
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(code_of(other), "key_reused");
  Request of_another = payment("k");
  of_another.scope = "globex";
  EXPECT_EQ(serve(of_another, paying()).status, 201);
  EXPECT_EQ(payments(), 2);
  Guard refunds(*engine_, {.operation = "create-refund"});
  const auto refund = refunds.serve(
      payment("k"), [&](const Request&, Execution& run) { return run.commit(paying()); });
  EXPECT_EQ(refund.status, 201);
  EXPECT_EQ(payments(), 3);
  EXPECT_TRUE(replays(first, serve(payment("k"), paying())));
}

TEST_P(Guarded, V16_work_that_failed_in_its_transaction_is_rolled_back_and_the_retry_runs) {
  const auto failed = serve(payment("k"), paying(0));
  EXPECT_EQ(failed.status, 500) << failed.body;
  EXPECT_EQ(field_of(failed, "Idempotency-Outcome"), "released");
  EXPECT_EQ(failed.body.find("amount"), std::string::npos) << "the database's error is no answer";
  EXPECT_EQ(payments(), 0);
  EXPECT_EQ(serve(payment("k"), paying()).status, 201);
  EXPECT_EQ(payments(), 1);
}

// A charge may lie before the rows that failed.
TEST_P(Guarded, T57_rows_that_failed_prove_nothing_about_earlier_work) {
  Guard charging(*engine_, {.operation = "create-payment"});
  int charges = 0;
  const auto charge = [&](const Request&, Execution& run) {
    ++charges;
    return run.commit(paying(0));
  };
  const auto first = charging.serve(payment("k"), charge);
  EXPECT_EQ(first.status, 502) << first.body;
  EXPECT_EQ(code_of(first), "outcome_unknown");
  EXPECT_EQ(code_of(charging.serve(payment("k"), charge)), "outcome_unknown");
  EXPECT_EQ(charges, 1);
  // An owner that knows better declares it.
  const auto knowing =
      charging.serve(payment("k2"), [&](const Request&, Execution& run) -> Outcome {
        Outcome outcome = run.commit(paying(0));
        EXPECT_TRUE(std::holds_alternative<NotCommitted>(outcome));
        return NotExecuted{{500, {}, "nothing was charged"}};
      });
  EXPECT_EQ(knowing.body, "nothing was charged");
  EXPECT_EQ(charging
                .serve(payment("k2"),
                       [&](const Request&, Execution& run) { return run.commit(paying()); })
                .status,
            201);
}

TEST_P(Guarded, T57_only_a_commit_can_say_that_it_committed) {
  const auto claimed = guard_->serve(payment("k"), [](const Request&, Execution& run) -> Outcome {
    return Committed{
        {201, {}, "claimed"}, {Verdict::done, State::completed, {}}, {run.attempt().fence, {}}};
  });
  EXPECT_EQ(code_of(claimed), "outcome_unknown");
  const auto in_rows = serve(payment("k2"), [](Transaction& tx) -> Outcome {
    tx.run("INSERT INTO payments VALUES ('p', 1)");
    return Committed{{201, {}, "claimed"}, {Verdict::done, State::completed, {}}, {}};
  });
  EXPECT_EQ(in_rows.status, 500) << in_rows.body;
  EXPECT_EQ(payments(), 0);
}

TEST_P(Guarded, S17_a_guard_asked_from_within_rows_reports_the_mistake_instead_of_waiting) {
  const auto outer = serve(payment("k"), [&](Transaction& tx) -> Outcome {
    const auto inner = serve(payment("k2"), paying());
    EXPECT_EQ(inner.status, 503);
    EXPECT_EQ(code_of(inner), "store_unavailable");
    return paying()(tx);
  });
  EXPECT_EQ(outer.status, 201);
  EXPECT_EQ(serve(payment("k2"), paying()).status, 201);
}

TEST_P(Guarded, S14_a_handler_cannot_speak_in_our_name_nor_break_a_line) {
  const auto first = serve(payment("k"), [](Transaction&) -> Outcome {
    return Response{200,
                    {{"Idempotent-Replayed", "true"},
                     {"idem-fence", "1"},
                     {"X-Split", "a\r\nX-Other: b"},
                     {"X-Kept", "yes"}},
                    "ok"};
  });
  EXPECT_FALSE(field_of(first, "Idempotent-Replayed"));
  const auto again = serve(payment("k"), paying());
  EXPECT_EQ(field_of(again, "Idempotent-Replayed"), "true");
  for (const auto& answer : {first, again}) {
    EXPECT_EQ(field_of(answer, "X-Kept"), "yes");
    EXPECT_FALSE(field_of(answer, "X-Split"));
    EXPECT_FALSE(field_of(answer, "idem-fence"));
  }
}

TEST_P(Guarded, S12_a_definite_failure_is_an_answer_like_any_other) {
  const auto declined =
      serve(payment("k"), [](Transaction&) -> Outcome { return Response{402, {}, "declined"}; });
  EXPECT_EQ(declined.status, 402);
  EXPECT_TRUE(replays(declined, serve(payment("k"), paying())));
  const auto broken = guard_->serve(payment("k2"), [](const Request&, Execution&) -> Outcome {
    return Response{503, {}, "said by the handler"};
  });
  EXPECT_TRUE(replays(broken, serve(payment("k2"), paying())));
  for (const int status : {401, 408, 421, 425, 429, 500, 504}) {
    const auto key = fmt::format("status-{}", status);
    const auto answered = guard_->serve(payment(key), [&](const Request&, Execution&) -> Outcome {
      return Response{status, {}, "said by the handler"};
    });
    EXPECT_EQ(answered.status, status);
    EXPECT_TRUE(replays(answered, serve(payment(key), paying()))) << status;
  }
  EXPECT_EQ(payments(), 0);
}

TEST_P(Guarded, S16_work_that_a_handler_proves_not_done_runs_again) {
  int runs = 0;
  const auto first = guard_->serve(payment("k"), [&](const Request&, Execution&) -> Outcome {
    ++runs;
    return NotExecuted{{503, {{"Retry-After", "1"}}, "busy"}};
  });
  EXPECT_EQ(first.status, 503);
  EXPECT_EQ(first.body, "busy");
  EXPECT_EQ(field_of(first, "Idempotency-Outcome"), "released");
  EXPECT_EQ(serve(payment("k"), paying()).status, 201);
  EXPECT_EQ(runs, 1);
}

TEST_P(Guarded, T57_an_exception_out_of_a_handler_is_unknown_and_never_run_again) {
  const auto throwing = [](const Request&, Execution&) -> Outcome {
    throw std::runtime_error("after the charge");
  };
  const auto first = guard_->serve(payment("k"), throwing);
  EXPECT_EQ(first.status, 502);
  EXPECT_EQ(code_of(first), "outcome_unknown");
  const auto retry = serve(payment("k"), paying());
  EXPECT_EQ(retry.status, 409);
  EXPECT_EQ(code_of(retry), "outcome_unknown");
  EXPECT_EQ(payments(), 0);
}

TEST_P(Guarded, S17_an_exception_out_of_the_rows_leaves_none_and_the_handler_may_say_so) {
  const auto answer = guard_->serve(payment("k"), [](const Request&, Execution& run) -> Outcome {
    try {
      return run.commit([](Transaction& tx) -> Outcome {
        tx.run("INSERT INTO payments VALUES ('p', 1)");
        throw std::runtime_error("of the business");
      });
    } catch (const std::runtime_error& error) {
      return NotExecuted{{500, {}, error.what()}};
    }
  });
  EXPECT_EQ(answer.body, "of the business");
  EXPECT_EQ(payments(), 0);
  EXPECT_EQ(serve(payment("k"), paying()).status, 201);
}

TEST_P(Guarded, S17_a_handlers_answer_after_its_commit_is_ignored) {
  const auto first = guard_->serve(payment("k"), [&](const Request&, Execution& run) -> Outcome {
    EXPECT_TRUE(std::holds_alternative<Committed>(run.commit(paying())));
    const auto again = run.commit(paying());
    EXPECT_FALSE(std::holds_alternative<Committed>(again)) << "its rows would be there twice";
    return Response{500, {}, "something else"};
  });
  EXPECT_EQ(first.status, 201) << first.body;
  EXPECT_TRUE(replays(first, serve(payment("k"), paying())));
  EXPECT_EQ(payments(), 1);
}

TEST_P(Guarded, T08_a_stale_owner_commits_nothing) {
  int runs = 0;
  const auto first = guard_->serve(payment("k"), [&](const Request&, Execution& run) -> Outcome {
    // Evidence proves that this one is dead, and the key runs again meanwhile.
    const auto freed = ask_and_wait(engine_->store(),
                                    Release{run.id(), run.attempt(), ReleaseBasis::proven, {}, {}});
    EXPECT_EQ(freed.value().verdict, Verdict::done);
    EXPECT_EQ(serve(payment("k"), paying()).status, 201);
    return run.commit([&](Transaction&) -> Outcome {
      ++runs;
      return Response{200, {}, "stale"};
    });
  });
  EXPECT_EQ(runs, 0) << "not even begun";
  EXPECT_EQ(first.status, 201) << "the record's answer, by any attempt";
  EXPECT_EQ(payments(), 1);
}

TEST_P(Guarded, V01_V12_of_many_at_once_one_runs_and_all_get_its_answer) {
  constexpr int callers = 16;
  Guard waiting(*engine_, {.operation = "create-payment", .wait = 30s});
  std::latch together(callers);
  std::vector<std::future<Response>> answers;
  for (int i = 0; i < callers; ++i) {
    answers.push_back(std::async(std::launch::async, [&] {
      together.arrive_and_wait();
      return waiting.serve(payment("k"),
                           [&](const Request&, Execution& run) { return run.commit(paying()); });
    }));
  }
  std::set<std::string> bodies;
  int fresh = 0;
  for (auto& one : answers) {
    const auto answer = one.get();
    EXPECT_EQ(answer.status, 201) << answer.body;
    bodies.insert(answer.body);
    fresh += field_of(answer, "Idempotent-Replayed") ? 0 : 1;
  }
  EXPECT_EQ(bodies.size(), 1U);
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(payments(), 1);
}

TEST_P(Guarded, S07_without_a_wait_a_duplicate_gets_in_progress_at_once) {
  const auto first = guard_->serve(payment("k"), [&](const Request&, Execution& run) {
    const auto duplicate = serve(payment("k"), paying());
    EXPECT_EQ(duplicate.status, 409);
    EXPECT_EQ(code_of(duplicate), "in_progress");
    EXPECT_TRUE(field_of(duplicate, "Retry-After"));
    return run.commit(paying());
  });
  EXPECT_EQ(first.status, 201);
}

TEST_P(Guarded, V27_the_lease_of_a_long_run_is_renewed) {
  Guard brief(*engine_, {.operation = "create-payment", .lease = 6s});
  const auto answer = brief.serve(payment("k"), [&](const Request&, Execution& run) {
    const StoreTime first = record_of(run.id()).locked_until;
    Record now = record_of(run.id());
    while (now.state == State::in_progress && now.locked_until == first) {
      back_off();
      now = record_of(run.id());
    }
    EXPECT_EQ(now.state, State::in_progress);
    EXPECT_GT(now.locked_until, first);
    EXPECT_GT(run.lease_left(), Millis{0});
    return run.commit(paying());
  });
  EXPECT_EQ(answer.status, 201) << answer.body;
}

TEST_P(Guarded, V27_a_run_beyond_its_time_is_as_good_as_dead_but_its_own_late_truth_counts) {
  Guard brief(*engine_, {.operation = "create-payment", .lease = 300ms, .run_max = 1ms});
  const auto answer = brief.serve(payment("k"), [&](const Request&, Execution& run) {
    while (record_of(run.id()).state == State::in_progress) back_off();
    EXPECT_EQ(run.lease_left(), Millis{0});
    EXPECT_EQ(code_of(serve(payment("k"), paying())), "outcome_unknown");
    return run.commit(paying());
  });
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_TRUE(replays(answer, serve(payment("k"), paying())));
  EXPECT_EQ(payments(), 1);
}

TEST_P(Guarded, S12_an_answer_too_large_to_keep_is_given_once) {
  Guard small(*engine_, {.operation = "create-payment", .response_body_bytes_max = 100});
  const std::string large(101, 'x');
  for (const bool commits : {true, false}) {
    const auto key = commits ? "committed" : "answered";
    const auto first = small.serve(payment(key), [&](const Request&, Execution& run) -> Outcome {
      const Response answer{201, {{"Location", "/l"}}, large};
      if (!commits) return answer;
      return run.commit([&](Transaction&) -> Outcome { return answer; });
    });
    EXPECT_EQ(first.body, large);
    const auto retry = small.serve(payment(key), [](const Request&, Execution&) -> Outcome {
      ADD_FAILURE() << "it ran again";
      return Response{};
    });
    EXPECT_EQ(retry.status, 409);
    EXPECT_EQ(code_of(retry), "response_not_stored");
  }
}

TEST_P(Guarded, P22_an_engine_ends_once_nothing_is_served_any_more) {
  std::latch serving(1);
  std::latch ending(1);
  auto answer = std::async(std::launch::async, [&] {
    return guard_->serve(payment("k"), [&](const Request&, Execution& run) {
      serving.count_down();
      ending.wait();
      return run.commit(paying());
    });
  });
  serving.wait();
  std::thread end([&] {
    ending.count_down();
    engine_.reset();
  });
  EXPECT_EQ(answer.get().status, 201);
  end.join();
  engine_ = std::make_unique<Engine>(open());
  EXPECT_EQ(payments(), 1);
}

// ---- reserve, rows and answer in one commit ----

TEST_P(Guarded, S17_a_handler_that_touches_only_the_database_needs_one_commit) {
  const auto first = guard_->serve_in_transaction(payment("k"), paying());
  EXPECT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(field_of(first, "Idempotency-Outcome"), "stored");
  EXPECT_TRUE(field_of(first, "Idempotency-Expires"));
  EXPECT_TRUE(replays(first, guard_->serve_in_transaction(payment("k"), paying())));
  EXPECT_TRUE(replays(first, serve(payment("k"), paying())));
  EXPECT_EQ(guard_->serve_in_transaction(payment("k", 6), paying()).status, 422);
  EXPECT_EQ(payments(), 1);
}

TEST_P(Guarded, V16_work_that_fails_in_the_one_commit_leaves_nothing) {
  const auto throwing = [](Transaction& tx) -> Outcome {
    tx.run("INSERT INTO payments VALUES ('p', 1)");
    throw std::runtime_error("of the business");
  };
  for (const TransactionWork& work : {paying(0), TransactionWork(throwing)}) {
    const auto failed = guard_->serve_in_transaction(payment("k"), work);
    EXPECT_EQ(failed.status, 500);
    EXPECT_EQ(field_of(failed, "Idempotency-Outcome"), "released");
    EXPECT_EQ(payments(), 0);
  }
  const auto own = guard_->serve_in_transaction(payment("k"), [](Transaction& tx) -> Outcome {
    tx.run("INSERT INTO payments VALUES ('p', 1)");
    return NotExecuted{{409, {}, "out of stock"}};
  });
  EXPECT_EQ(own.body, "out of stock");
  EXPECT_EQ(payments(), 0);
  EXPECT_EQ(guard_->serve_in_transaction(payment("k"), paying()).status, 201);
  EXPECT_EQ(payments(), 1);
}

TEST_P(Guarded, T57_work_that_does_not_know_is_believed_in_the_one_commit_too) {
  const auto first = guard_->serve_in_transaction(payment("k"), [](Transaction& tx) -> Outcome {
    tx.run("INSERT INTO payments VALUES ('p', 1)");
    return OutcomeUnknown{};
  });
  EXPECT_EQ(code_of(first), "outcome_unknown") << first.body;
  EXPECT_EQ(code_of(guard_->serve_in_transaction(payment("k"), paying())), "outcome_unknown");
  EXPECT_EQ(payments(), 0);
}

TEST_P(Guarded, V01_of_many_at_once_one_commits) {
  constexpr int callers = 8;
  constexpr int keys = 10;
  Guard waiting(*engine_, {.operation = "create-payment", .wait = 30s});
  std::vector<std::thread> threads;
  std::atomic<int> fresh = 0;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < keys; ++k) {
        const auto answer = waiting.serve_in_transaction(payment(fmt::format("k{}", k)), paying());
        EXPECT_EQ(answer.status, 201) << answer.body;
        if (!field_of(answer, "Idempotent-Replayed")) ++fresh;
      }
    });
  }
  for (auto& one : threads) one.join();
  EXPECT_EQ(fresh, keys);
  EXPECT_EQ(payments(), keys);
}

}  // namespace
}  // namespace idem::test
