#include "library/phased.hpp"
#include "support/back_off.hpp"

/// Work in phases: what committed is never done again, and what may have been done outside is
/// repeated only as it was declared.
namespace idem::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Stores, Phases, testing::Values("sqlite", "postgres", "mysql"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Phases, S16_V22_run_one_after_the_other_and_their_answer_is_replayed) {
  PhasedGuard guard(*engine_, rules(), phases());
  const auto first = guard.serve(payment("k"));
  EXPECT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(field_of(first, "Idempotency-Outcome"), "stored");
  EXPECT_TRUE(replays(first, guard.serve(payment("k"))));
  EXPECT_EQ(code_of(guard.serve(payment("k", 6))), "key_reused");
  EXPECT_EQ(bank_.charges(), 1);
  EXPECT_EQ(payments(), 1);
  EXPECT_EQ(messages(), 1);
  EXPECT_EQ(flows(), 0);
}

TEST_P(Phases, V21_a_definite_refusal_is_stored_and_replayed_as_such) {
  bank_.will({Does::decline});
  PhasedGuard guard(*engine_, rules(), phases());
  const auto first = guard.serve(payment("k"));
  EXPECT_EQ(first.status, 402);
  EXPECT_TRUE(replays(first, guard.serve(payment("k"))));
  EXPECT_EQ(bank_.calls(), 1);
  EXPECT_EQ(bank_.charges(), 0);
  EXPECT_EQ(messages(), 0);
  EXPECT_EQ(count("SELECT amount FROM payments"), 1);
}

TEST_P(Phases, V18_S16_the_next_attempt_goes_on_behind_the_last_phase_that_committed) {
  fails_to_finish_ = 1;
  PhasedGuard guard(*engine_, rules(), phases());
  const auto left = guard.serve(payment("k"));
  EXPECT_EQ(code_of(left), "in_progress") << left.body;
  EXPECT_TRUE(field_of(left, "Retry-After"));
  EXPECT_EQ(messages(), 0);
  const auto answer = until_it_ends(guard, "k");
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(ran_created_, 1);
  EXPECT_EQ(ran_charged_, 1);
  EXPECT_EQ(bank_.calls(), 1);
  EXPECT_EQ(messages(), 1);
  EXPECT_EQ(flows(), 0);
}

TEST_P(Phases, S19_a_completer_goes_on_where_the_client_never_comes_back) {
  fails_to_finish_ = 1;
  PhasedGuard guard(*engine_, rules(), phases());
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "in_progress");
  // Two of them: whatever each thinks is due, the record lets one.
  PhasedGuard other(*engine_, rules(), phases());
  std::thread second([&] {
    while (flows() != 0) other.complete_due();
  });
  while (flows() != 0) guard.complete_due();
  second.join();
  const auto answer = guard.serve(payment("k"));
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(field_of(answer, "Idempotent-Replayed"), "true");
  EXPECT_EQ(bank_.charges(), 1);
  EXPECT_EQ(ran_created_, 1);
  EXPECT_EQ(messages(), 1);
}

TEST_P(Phases, V14_V24_within_the_window_a_lost_answer_is_asked_for_again_under_the_same_key) {
  bank_.will({Does::lose_answer});
  PhasedGuard guard(*engine_, rules(), phases(Declares::window));
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "in_progress");
  EXPECT_EQ(until_it_ends(guard, "k").status, 201);
  EXPECT_EQ(bank_.calls(), 2);
  EXPECT_EQ(bank_.charges(), 1);
}

TEST_P(Phases, T19_V14_an_exception_out_of_the_call_counts_as_a_possible_charge) {
  bank_.will({Does::fail});
  PhasedGuard guard(*engine_, rules(), phases(Declares::none));
  const auto answer = guard.serve(payment("k"));
  EXPECT_EQ(code_of(answer), "outcome_unknown") << answer.body;
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "outcome_unknown");
  EXPECT_EQ(bank_.calls(), 1);
  EXPECT_EQ(bank_.charges(), 1);
}

TEST_P(Phases, S16_outside_of_its_window_nothing_is_sent_again) {
  bank_.will({Does::lose_answer});
  auto made = phases(Declares::window);
  made[1].call.repetition.deduplicates = 150ms;  // Over, before the lease is.
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "in_progress");
  EXPECT_EQ(code_of(until_it_ends(guard, "k")), "outcome_unknown");
  EXPECT_EQ(bank_.calls(), 1);
}

TEST_P(Phases, S16_with_a_lookup_a_call_that_was_made_is_found_and_any_other_made_once) {
  PhasedGuard guard(*engine_, rules(), phases(Declares::lookup));
  bank_.will({Does::lose_answer});
  EXPECT_EQ(code_of(guard.serve(payment("done"))), "in_progress");
  EXPECT_EQ(until_it_ends(guard, "done").status, 201);
  EXPECT_EQ(bank_.calls(), 1);
  EXPECT_EQ(bank_.lookups(), 1);
  bank_.will({Does::lose_request});
  EXPECT_EQ(code_of(guard.serve(payment("not"))), "in_progress");
  EXPECT_EQ(until_it_ends(guard, "not").status, 201);
  EXPECT_EQ(bank_.calls(), 3);
  EXPECT_EQ(bank_.charges(), 2);
}

TEST_P(Phases, S16_where_the_lookup_gives_no_answer_it_ends_as_unknown) {
  bank_.will({Does::lose_answer});
  bank_.can_tell(false);
  auto options = rules();
  options.attempts_max = 2;
  PhasedGuard guard(*engine_, options, phases(Declares::lookup));
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "in_progress");
  EXPECT_EQ(code_of(until_it_ends(guard, "k")), "outcome_unknown");
  EXPECT_EQ(bank_.calls(), 1);
  EXPECT_EQ(bank_.charges(), 1);
}

TEST_P(Phases, S16_a_call_that_provably_did_nothing_is_tried_again_with_any_declaration) {
  bank_.will({Does::refuse_unsent});
  PhasedGuard guard(*engine_, rules(), phases(Declares::none));
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "in_progress");
  EXPECT_EQ(until_it_ends(guard, "k").status, 201);
  EXPECT_EQ(bank_.calls(), 2);
  EXPECT_EQ(bank_.charges(), 1);
}

TEST_P(Phases, S19_evidence_that_nothing_is_there_lets_the_call_be_made) {
  bank_.will({Does::lose_request});
  PhasedGuard guard(*engine_, rules(), phases(Declares::none));
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "in_progress");
  EXPECT_EQ(code_of(until_it_ends(guard, "k")), "outcome_unknown");
  const auto listed = ask_and_wait(engine_->store(), List{.state = State::unknown});
  ASSERT_TRUE(listed && listed->size() == 1);
  const auto now = ask_and_wait(engine_->store(), Count{})->now;
  Resolve verdict{.id = listed->at(0).id,
                  .as = Resolve::As::failed_retryable,
                  .fence = listed->at(0).fence(),
                  .response = {},
                  .source = "operator",
                  .evidence = "the bank's list",
                  .reason = "test",
                  .observed_at = now,
                  .grace = 0ms};
  // "Nothing there" counts once the lease is over.
  auto reply = ask_and_wait(engine_->store(), verdict);
  while (reply && reply->verdict == Resolve::Verdict::too_early) {
    verdict.observed_at = ask_and_wait(engine_->store(), Count{})->now;
    reply = ask_and_wait(engine_->store(), verdict);
  }
  ASSERT_TRUE(reply && reply->verdict == Resolve::Verdict::done);
  EXPECT_EQ(until_it_ends(guard, "k").status, 201);
  EXPECT_EQ(bank_.charges(), 1);
  EXPECT_EQ(ran_created_, 1);
}

TEST_P(Phases, T14_the_lease_of_a_long_phase_is_renewed_and_a_stale_owner_stops_at_its_next_step) {
  auto made = phases();
  auto send = made[1].call.send;
  std::promise<void> over;
  std::atomic<bool> first = true;
  made[1].call.send = [&](const PhaseCall& call) {
    auto end = send(call);
    // Longer than it may take, and than its lease can be renewed: as a process that was stopped.
    if (first.exchange(false)) over.get_future().wait();
    return end;
  };
  auto options = rules();
  options.guard.run_max = 100ms;
  PhasedGuard stale(*engine_, options, made);
  Response of_stale;
  std::thread slow([&] {
    // On a busy machine an attempt's time may be over before its call.
    while (first) of_stale = stale.serve(payment("k"));
  });
  while (first) back_off();
  PhasedGuard guard(*engine_, rules(), phases());
  const auto answer = until_it_ends(guard, "k");
  EXPECT_EQ(answer.status, 201);
  over.set_value();
  slow.join();
  EXPECT_TRUE(replays(answer, of_stale)) << of_stale.body;
  EXPECT_EQ(ran_charged_, 1);
  EXPECT_EQ(bank_.charges(), 1);
  EXPECT_EQ(messages(), 1);
}

TEST_P(Phases, V16_a_first_phase_that_fails_is_proven_not_executed_and_the_retry_runs) {
  auto made = phases();
  auto work = made[0].work;
  int failures = 1;
  made[0].work = [&](const PhaseRun& run, Transaction& tx) {
    PhaseEnd end = work(run, tx);
    if (failures-- > 0) throw std::runtime_error("as the test wants it");
    return end;
  };
  PhasedGuard guard(*engine_, rules(), made);
  const auto failed = guard.serve(payment("k"));
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(field_of(failed, "Idempotency-Outcome"), "released");
  EXPECT_EQ(payments(), 0);
  EXPECT_EQ(guard.serve(payment("k")).status, 201);
  EXPECT_EQ(payments(), 1);
}

TEST_P(Phases, V12_duplicates_meanwhile_get_in_progress_or_wait_for_the_answer) {
  auto made = phases();
  auto send = made[1].call.send;
  std::promise<void> go;
  auto gate = go.get_future().share();
  std::atomic<bool> is_in = false;
  made[1].call.send = [&](const PhaseCall& call) {
    is_in = true;
    gate.wait();
    return send(call);
  };
  auto options = rules();
  options.guard.lease = 10s;
  options.guard.wait = 20s;
  PhasedGuard guard(*engine_, options, made);
  Response first;
  Response second;
  std::thread runs([&] { first = guard.serve(payment("k")); });
  while (!is_in) back_off();
  auto impatient = payment("k");
  impatient.headers.push_back({"Prefer", "wait=0"});
  EXPECT_EQ(code_of(guard.serve(impatient)), "in_progress");
  std::thread waits([&] { second = guard.serve(payment("k")); });
  go.set_value();
  runs.join();
  waits.join();
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, second));
  EXPECT_EQ(bank_.calls(), 1);
}

TEST_P(Phases, S16_the_phases_see_only_the_kept_parts_of_a_request) {
  std::vector<Request> seen;
  auto made = phases();
  auto work = made[0].work;
  made[0].work = [&](const PhaseRun& run, Transaction& tx) {
    seen.push_back(run.request);
    return work(run, tx);
  };
  made[2].work = [&](const PhaseRun& run, Transaction& tx) {
    seen.push_back(run.request);
    if (seen.size() == 2) tx.fail("as the test wants it");
    return PhaseEnd(Response{201, {}, "paid"});
  };
  PhasedGuard guard(*engine_, rules(), made);
  auto request = payment("k");
  request.headers.push_back({"Authorization", "Bearer secret"});
  EXPECT_EQ(code_of(guard.serve(request)), "in_progress");
  while (flows() != 0) guard.complete_due();
  ASSERT_EQ(seen.size(), 3);
  for (const Request& one : seen) {
    EXPECT_EQ(one.method, "POST");
    EXPECT_EQ(one.target, "/payments");
    EXPECT_EQ(one.scope, "acme");
    EXPECT_EQ(one.body, request.body);
    EXPECT_EQ(one.headers, (std::vector<Field>{{"Content-Type", "application/json"}}));
  }
}

}  // namespace
}  // namespace idem::test
