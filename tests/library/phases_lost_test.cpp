#include "library/phased.hpp"
#include "store/internal_sql.hpp"
#include "support/back_off.hpp"

/// Losses between a record and its due flows: none of them lets a phase that
/// committed run again, or repeats a call that is not declared safe.
namespace idem::test {
namespace {

using LostPhases = Phases;

INSTANTIATE_TEST_SUITE_P(Stores, LostPhases, testing::Values("sqlite", "postgres", "mysql"),
                         [](const auto& kind) { return kind.param; });

// The end removed the due flow; only the record still knows how far it had come.
TEST_P(LostPhases, V36_S16_a_stored_5xx_that_is_released_goes_on_where_it_ended) {
  bank_.knows_keys(false);
  auto made = phases(Declares::none);
  int answers = 0;
  made[2].work = [&](const PhaseRun&, Transaction&) {
    return PhaseEnd(Response{++answers == 1 ? 500 : 201, {}, "of the last phase"});
  };
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(guard.serve(payment("k")).status, 500);
  const auto listed = ask_and_wait(engine_->store(), List{.state = State::completed});
  ASSERT_TRUE(listed && listed->size() == 1);
  const auto bust = ask_and_wait(engine_->store(), CacheBust{.id = listed->at(0).id,
                                                             .fence = listed->at(0).fence(),
                                                             .reason = "the printer was mended"});
  ASSERT_TRUE(bust && bust->verdict == Resolve::Verdict::done);
  EXPECT_EQ(guard.serve(payment("k")).status, 201);
  EXPECT_EQ(bank_.charges(), 1);
  EXPECT_EQ(ran_created_, 1);
  EXPECT_EQ(ran_charged_, 1);
}

// Also where a window is declared: from when on it counts, nobody knows any more.
TEST_P(LostPhases, V36_S16_nor_within_a_window_whose_beginning_nobody_knows) {
  auto made = phases(Declares::window);
  made[1].work = [](const PhaseRun&, Transaction&) { return PhaseEnd(Response{503, {}, "no"}); };
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(guard.serve(payment("k")).status, 503);
  const auto listed = ask_and_wait(engine_->store(), List{.state = State::completed});
  ASSERT_TRUE(listed && listed->size() == 1);
  const auto bust = ask_and_wait(
      engine_->store(),
      CacheBust{.id = listed->at(0).id, .fence = listed->at(0).fence(), .reason = "r"});
  ASSERT_TRUE(bust && bust->verdict == Resolve::Verdict::done);
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "outcome_unknown");
  EXPECT_EQ(bank_.calls(), 1);
}

// It had not come behind a call's phase: whether the call was made nobody knows any more.
TEST_P(LostPhases, V36_S16_one_that_a_call_may_follow_is_not_called_again) {
  auto made = phases(Declares::none);
  made[1].work = [](const PhaseRun&, Transaction&) { return PhaseEnd(Response{503, {}, "no"}); };
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(guard.serve(payment("k")).status, 503);
  const auto listed = ask_and_wait(engine_->store(), List{.state = State::completed});
  ASSERT_TRUE(listed && listed->size() == 1);
  const auto bust = ask_and_wait(
      engine_->store(),
      CacheBust{.id = listed->at(0).id, .fence = listed->at(0).fence(), .reason = "r"});
  ASSERT_TRUE(bust && bust->verdict == Resolve::Verdict::done);
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "outcome_unknown");
  EXPECT_EQ(bank_.calls(), 1);
  EXPECT_EQ(ran_created_, 1);
}

TEST_P(LostPhases, S16_a_keys_next_life_has_nothing_of_the_one_before) {
  std::vector<std::string> seen;
  auto made = phases(Declares::lookup);
  int failures = 1;
  made[0].work = [&](const PhaseRun& run, Transaction& tx) {
    if (failures-- > 0) tx.fail("as the test wants it");
    seen.push_back("created " + run.request.body);
    return PhaseEnd(NextPhase{});
  };
  made[1].work = [&](const PhaseRun&, Transaction&) { return PhaseEnd(NextPhase{}); };
  int failures_behind = 1;
  made[2].work = [&](const PhaseRun& run, Transaction& tx) {
    if (failures_behind-- > 0) tx.fail("as the test wants it");
    seen.push_back("finished " + run.request.body);
    return PhaseEnd(Response{201, {}, "paid"});
  };
  auto options = rules();
  options.guard.retention = 50ms;
  options.guard.tombstone = 0ms;
  PhasedGuard guard(*engine_, options, made);
  EXPECT_EQ(guard.serve(payment("k", 5)).status, 500);
  wait_by_the_store(100ms);  // The released record is gone by then.
  EXPECT_EQ(code_of(guard.serve(payment("k", 7))), "in_progress");
  while (flows() != 0) guard.complete_due();
  EXPECT_EQ(seen.back(), "finished " + payment("k", 7).body);
}

TEST_P(LostPhases, S16_every_attempt_works_on_the_first_request) {
  std::vector<std::string> seen;
  auto made = phases();
  made[0].work = [&](const PhaseRun& run, Transaction&) {
    seen.push_back("created for " + run.request.headers.back().value);
    return PhaseEnd(NextPhase{});
  };
  made[1].call.send = [&](const PhaseCall& call) -> CallEnd {
    seen.push_back("charged to " + call.request.headers.back().value);
    return bank_.charge(call.key);
  };
  auto options = rules();
  options.keep_fields = {"Content-Type", "X-Account"};  // It is not in the fingerprint.
  PhasedGuard guard(*engine_, options, made);
  bank_.will({Does::refuse_unsent});
  auto one = payment("k");
  one.headers.push_back({"X-Account", "A"});
  EXPECT_EQ(code_of(guard.serve(one)), "in_progress");
  one.headers.back().value = "B";
  while (code_of(guard.serve(one)) == "in_progress") back_off();
  EXPECT_EQ(seen.front(), "created for A");
  EXPECT_EQ(seen.back(), "charged to A");
}

// Only there one request can hold up another's commit.
using LostPhasesOnSqlite = LostPhases;
INSTANTIATE_TEST_SUITE_P(Stores, LostPhasesOnSqlite, testing::Values("sqlite"),
                         [](const auto& kind) { return kind.param; });

// As a process that was stopped: its reserve is granted, and answered when the lease is over.
TEST_P(LostPhasesOnSqlite, T14_S03_an_attempt_that_took_work_up_too_late_proves_nothing) {
  fails_to_finish_ = 1;
  PhasedGuard guard(*engine_, rules(), phases());
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "in_progress");
  wait_by_the_store(450ms);
  std::promise<void> holds;
  std::promise<void> let_go;
  std::jthread slow([&] {
    (void)serve(payment("other"), [&](Transaction&) -> Outcome {
      holds.set_value();
      let_go.get_future().wait();
      return Response{200, {}, ""};
    });
  });
  holds.get_future().wait();
  Response late;
  std::jthread retry([&] { late = guard.serve(payment("k")); });
  std::this_thread::sleep_for(900ms);
  let_go.set_value();
  retry.join();
  EXPECT_EQ(code_of(late), "in_progress") << late.body;
  while (flows() != 0) guard.complete_due();
  EXPECT_EQ(until_it_ends(guard, "k").status, 201);
  EXPECT_EQ(bank_.charges(), 1);
  EXPECT_EQ(messages(), 1);
}

TEST_P(LostPhases, S16_where_another_phase_was_put_before_an_open_call_it_ends_as_unknown) {
  bank_.knows_keys(false);
  bank_.will({Does::lose_answer});
  auto made = phases(Declares::lookup);
  made[1].call.repetition.lookup_grace = 1h;
  {
    PhasedGuard old(*engine_, rules(), made);
    EXPECT_EQ(code_of(old.serve(payment("k"))), "in_progress");
  }
  Phase between{.name = "screened",
                .work = [](const PhaseRun&, Transaction&) { return PhaseEnd(NextPhase{}); }};
  made.insert(made.begin() + 1, between);
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(code_of(until_it_ends(guard, "k")), "outcome_unknown");
  EXPECT_EQ(bank_.charges(), 1);
  EXPECT_EQ(until_it_ends(guard, "another").status, 201);
}

TEST_P(LostPhases, S16_a_renamed_phase_sends_nothing_again_under_another_key) {
  bank_.will({Does::lose_answer});
  auto made = phases(Declares::window);
  {
    PhasedGuard old(*engine_, rules(), made);
    EXPECT_EQ(code_of(old.serve(payment("k"))), "in_progress");
  }
  made[1].name = "charged-by-card";
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(code_of(until_it_ends(guard, "k")), "outcome_unknown");
  EXPECT_EQ(bank_.charges(), 1);
}

TEST_P(LostPhases, S16_one_whose_phase_is_gone_ends_as_unknown) {
  fails_to_finish_ = 1;
  auto made = phases();
  {
    PhasedGuard old(*engine_, rules(), made);
    EXPECT_EQ(code_of(old.serve(payment("k"))), "in_progress");
  }
  made.erase(made.begin() + 1);
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(code_of(until_it_ends(guard, "k")), "outcome_unknown");
}

TEST_P(LostPhases, S16_however_often_nothing_was_sent_it_does_not_become_unknown) {
  bank_.will({Does::refuse_unsent, Does::refuse_unsent, Does::refuse_unsent, Does::refuse_unsent});
  auto options = rules();
  options.attempts_max = 2;
  PhasedGuard guard(*engine_, options, phases(Declares::none));
  // Each time as soon as the provider wanted to be asked again: in an hour, so that only retries
  // do.
  EXPECT_EQ(until_it_ends(guard, "k").status, 201);
  EXPECT_EQ(bank_.calls(), 5);
  EXPECT_EQ(bank_.charges(), 1);
}

TEST_P(LostPhases, S16_a_flow_closed_under_an_attempt_skips_no_phase) {
  auto made = phases(Declares::none);
  made[1].call.send = [&](const PhaseCall& call) {
    const auto due = InternalSql::run(*engine_->transactions(), InternalStatement::postpone_flow,
                                      {to_hex(call.id.bytes), std::int64_t{-60'000}});
    const auto rows = InternalSql::run(*engine_->transactions(), InternalStatement::due_flows,
                                       {std::string("charge"), std::int64_t{10}});
    EXPECT_TRUE(due && rows && rows->size() == 1);
    const auto token = std::get<std::string>(rows->at(0).at(3));
    EXPECT_TRUE(InternalSql::run(*engine_->transactions(), InternalStatement::close_flow,
                                 {to_hex(call.id.bytes), token}));
    return bank_.charge(call.key);
  };
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "outcome_unknown");
  EXPECT_EQ(bank_.calls(), 1);
  EXPECT_EQ(messages(), 0);
}

}  // namespace
}  // namespace idem::test
