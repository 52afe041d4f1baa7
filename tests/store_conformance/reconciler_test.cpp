#include "store_conformance/reconciling.hpp"

#include <latch>
#include <thread>

#include <idem/worker_limits.hpp>

/// The reconciler's turns at real stores, with the schedules that would be a second effect.
namespace idem::test {
namespace {

TEST_P(Reconciling, S19_a_finding_becomes_the_answer_with_its_evidence) {
  lose(1);
  reply_ = Provider::Answer{200, R"({"id":"ch_1"})"};
  turn();
  const Record settled = record(1);
  ASSERT_EQ(settled.state, State::completed);
  EXPECT_EQ(settled.response->body, R"({"id":"ch_1"})");
  const auto lines = story(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].applied);
  EXPECT_EQ(lines[0].source, "poll:bank");
  EXPECT_NE(lines[0].evidence.find(R"("said":"found","status":200,"body_sha256":")"),
            std::string::npos);
  EXPECT_EQ(shard_.reconciled[1].value(), 1u);
  turn();
  EXPECT_EQ(asked_, 1) << "a settled record is not asked about";
}

TEST_P(Reconciling, S19_a_failure_that_is_found_is_replayed_as_one) {
  lose(1);
  reply_ = Provider::Answer{402, R"({"error":"card_declined"})"};
  turn();
  EXPECT_EQ(record(1).state, State::unknown) << "it may be said of an attempt before this one";
  pass(60s + 30s + 1ms);
  turn();
  EXPECT_EQ(record(1).response->status, 402);
}

TEST_P(Reconciling, S19_nothing_there_counts_only_behind_the_lease_and_the_grace) {
  lose(1);
  turn();
  EXPECT_EQ(record(1).state, State::unknown) << "the attempt could still send";
  EXPECT_EQ(asked_, 1);
  provider_->attempts_max = 100;
  while (now() <= record(1).locked_until + provider_->grace) {
    EXPECT_EQ(record(1).state, State::unknown) << "it may take that long to be shown";
    pass(*record(1).reconcile_after - now());
    turn();
  }
  EXPECT_EQ(record(1).state, State::failed_retryable);
  EXPECT_EQ(now(), start_ + 90s + 1ms) << "and as soon as it does, it is asked";
}

TEST_P(Reconciling, S19_an_observation_is_as_old_as_the_start_of_its_question) {
  lose(1);
  pass(60s + 30s - 10ms);
  on_ask_ = [this](const Record&) { pass(20ms); };
  turn();
  EXPECT_EQ(record(1).state, State::unknown)
      << "it was asked before the moment from which its answer counts";
}

TEST_P(Reconciling, S19_turns_are_planned_with_growing_pauses_and_end_with_people) {
  lose(1, 5s);
  reply_ = std::unexpected("connection refused");
  turn();
  EXPECT_EQ(asked_, 0) << "not due yet";
  Millis before{};
  for (int i = 1; i <= 3; ++i) {
    pass(*record(1).reconcile_after - now());
    turn();
    EXPECT_EQ(asked_, i);
    if (i == 3) break;
    const Millis pause = *record(1).reconcile_after - now();
    EXPECT_GE(pause, before);
    EXPECT_GE(pause, Millis(1'000) * (1 << (i - 1)));
    EXPECT_LE(pause, Millis(2'000) * (1 << (i - 1)));
    before = Millis(1'000) * (1 << (i - 1));
  }
  EXPECT_FALSE(record(1).reconcile_after);
  EXPECT_EQ(events_, (std::vector<std::string>{"provider_failing", "reconcile_given_up"}));
  EXPECT_EQ(provider_->counts->failures[static_cast<std::size_t>(metrics::Unanswered::protocol)],
            3U);
  ASSERT_EQ(story(1).size(), 1u);
  EXPECT_NE(story(1)[0].reason.find("connection refused"), std::string::npos);
  EXPECT_EQ(shard_.reconciled[2].value(), 1u);
  pass(24h);
  turn();
  EXPECT_EQ(asked_, 3) << "it is an operator's from here on";
}

TEST_P(Reconciling, S19_each_reason_for_no_answer_is_in_the_evidence_once) {
  lose(1);
  provider_->attempts_max = 30;
  provider_->retry_first = 1ms;
  provider_->retry_max = 1ms;
  auto reconciler = reconciler_of(*store_, {.failures = 100});
  // The next turn is due a millisecond after the one before.
  const auto ask_once = [&] {
    for (const int before = asked_; asked_ == before;) reconciler.turn();
  };
  const auto next = [&](ProviderReply says, int turns) {
    reply_ = std::move(says);
    for (int i = 0; i < turns; ++i) ask_once();
  };
  next(std::unexpected("connection refused"), 5);
  EXPECT_EQ(asked_, 5);
  ASSERT_EQ(story(1).size(), 1U);
  EXPECT_EQ(story(1)[0].source, "poll:bank");
  EXPECT_EQ(story(1)[0].reason, "no answer: connection refused");
  EXPECT_EQ(story(1)[0].fence, record(1).fence());
  EXPECT_FALSE(story(1)[0].applied);
  next(Provider::Answer{401, ""}, 3);
  ASSERT_EQ(story(1).size(), 2U);
  EXPECT_NE(story(1)[1].reason.find("401"), std::string::npos);
  for (int i = 0; i < 5; ++i) {
    next(std::unexpected("connection refused"), 1);
    next(Provider::Answer{401, ""}, 1);
  }
  EXPECT_EQ(story(1).size(), static_cast<std::size_t>(limits::unanswered_lines_max));
  EXPECT_EQ(record(1).state, State::unknown);
  reply_ = Provider::Answer{200, R"({"id":"ch_1"})"};
  ask_once();
  EXPECT_EQ(record(1).state, State::completed) << "such lines say nothing of the attempt";
  const auto& counts = *provider_->counts;
  EXPECT_EQ(counts.failures[static_cast<std::size_t>(metrics::Unanswered::protocol)], 10U);
  EXPECT_EQ(counts.failures[static_cast<std::size_t>(metrics::Unanswered::status)], 8U);
  EXPECT_EQ(counts.answers[static_cast<std::size_t>(metrics::Answered::found)], 1U);
  EXPECT_EQ(events_, std::vector<std::string>{"provider_failing"});
}

TEST_P(Reconciling, S19_a_provider_that_fails_is_left_alone_and_costs_no_record_its_turns) {
  for (std::uint8_t key = 1; key <= 20; ++key) lose(key);
  reply_ = Provider::Answer{503, ""};
  auto reconciler = reconciler_of(*store_);
  reconciler.turn();
  EXPECT_EQ(asked_, limits::breaker_failures) << "also of those that were due with the first";
  reconciler.turn();
  EXPECT_EQ(asked_, limits::breaker_failures) << "its breaker is open";
  EXPECT_EQ(record(20).reconcile_attempts + record(1).reconcile_attempts, 1u);

  const Attempt attempt = begin(21);
  record_event(21, attempt.fence, Finding::found, 201);
  ask(MarkUnknown{id(21), attempt, "timeout", {}, ""});
  reconciler.turn();
  EXPECT_EQ(record(21).state, State::completed) << "a charge already reported needs no question";
  EXPECT_EQ(asked_, limits::breaker_failures);
}

TEST_P(Reconciling, S19_one_question_tries_a_provider_that_failed) {
  for (std::uint8_t key = 1; key <= 20; ++key) lose(key);
  reply_ = Provider::Answer{503, ""};
  auto reconciler = reconciler_of(*store_, {.failures = limits::breaker_failures});
  on_ask_ = [&](const Record&) {
    if (asked_ != limits::breaker_failures + 1) return;
    reconciler.turn();  // As another lane would, while this question is out.
    EXPECT_EQ(asked_, limits::breaker_failures + 1);
  };
  reconciler.turn();
  EXPECT_GT(asked_, limits::breaker_failures + 1) << "one at a time, they go on";
}

TEST_P(Reconciling, S19_a_late_answer_ends_nobody_elses_trial) {
  reply_ = Provider::Answer{503, ""};
  auto reconciler = reconciler_of(*store_, {.failures = 1});
  std::latch is_out{1};
  std::latch may_end{1};
  std::jthread late;
  on_ask_ = [&](const Record& record) {
    if (record.id == id(1)) {
      is_out.count_down();
      may_end.wait();
    } else if (record.id == id(3)) {  // On trial, since the second one failed.
      may_end.count_down();
      late.join();
      lose(4);
      reconciler.turn();
      EXPECT_EQ(asked_, 3) << "one at a time";
    }
  };
  lose(1);
  late = std::jthread([&] { reconciler.turn(); });
  is_out.wait();
  for (const std::uint8_t key : {2, 3}) {
    lose(key);
    reconciler.turn();
  }
  EXPECT_EQ(asked_, 3);
}

TEST_P(Reconciling, S19_a_turn_that_is_stopped_asks_no_further) {
  for (std::uint8_t key = 1; key <= 20; ++key) lose(key);
  auto reconciler = reconciler_of(*store_);
  on_ask_ = [&](const Record&) { reconciler.stop(); };
  reconciler.turn();
  EXPECT_EQ(asked_, 1);
}

TEST_P(Reconciling, S19_a_record_that_the_store_cannot_read_or_apply_waits_for_people) {
  const Attempt attempt = begin(1);
  record_event(1, attempt.fence, Finding::found, 201);
  ask(MarkUnknown{id(1), attempt, "timeout", {}, ""});
  lose(2);
  Refusing unread(*store_, StoreCall(ReadEvidence{}).index());
  auto first = reconciler_of(unread);
  first.turn();
  EXPECT_EQ(record(2).reconcile_attempts, 1u);
  EXPECT_FALSE(record(2).reconcile_after);
  EXPECT_EQ(record(1).reconcile_attempts, 1u);

  const Attempt other = begin(3);
  record_event(3, other.fence, Finding::found, 201);
  ask(MarkUnknown{id(3), other, "timeout", {}, ""});
  Refusing unapplied(*store_, StoreCall(Resolve{}).index());
  auto second = reconciler_of(unapplied);
  second.turn();
  EXPECT_EQ(record(3).reconcile_attempts, 1u);
  EXPECT_FALSE(record(3).reconcile_after);
  EXPECT_NE(story(3).back().reason.find("the store refused the kept event"), std::string::npos);
  EXPECT_EQ(asked_, 0);
}

// Without a plan it stays due: it was tried ten times a second, for ever.
TEST_P(Reconciling, S19_S22_a_damaged_record_that_takes_no_plan_is_given_up_once) {
  lose(1);
  Refusing damaged(*store_, StoreCall(Reschedule{}).index(), StoreError::Code::damaged);
  struct Counting final : ForwardingStore {
    using ForwardingStore::ForwardingStore;
    void call(StoreCall what, StoreCompletion done) override {
      if (std::holds_alternative<Reschedule>(what)) ++plans;
      ForwardingStore::call(std::move(what), std::move(done));
    }
    std::atomic<int> plans = 0;
  } counting(damaged);
  auto reconciler = reconciler_of(counting);
  for (int i = 0; i < 5; ++i) reconciler.turn();
  EXPECT_EQ(std::ranges::count(events_, std::string("reconcile_given_up")), 1);
  EXPECT_EQ(counting.plans, 1);
  EXPECT_EQ(asked_, 0);
}

TEST_P(Reconciling, S19_it_is_asked_by_the_clients_key_where_that_was_kept) {
  Reserve verb = reserve(1);
  verb.sealed_key = "k-1";
  const auto outcome = ask(verb);
  ask(MarkUnknown{id(1), std::get<Execute>(outcome).attempt, "timeout", {}, ""});
  reply_ = {200, "{}"};
  turn();
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(asked_by_, "k-1");
  lose(2);
  turn();
  EXPECT_EQ(asked_by_, "");
}

TEST_P(Reconciling, S19_a_question_that_cannot_be_asked_proves_nothing_of_the_provider) {
  provider_->cannot_ask = [](const Record& record, std::string_view) {
    const bool can = record.id == id(9);
    return can ? std::nullopt : std::optional<std::string>("there is nothing to ask by");
  };
  for (std::uint8_t key = 1; key < 9; ++key) lose(key);
  lose(9);
  reply_ = Provider::Answer{200, "{}"};
  auto reconciler = reconciler_of(*store_);
  reconciler.turn();
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(record(9).state, State::completed);
  EXPECT_EQ(record(1).state, State::unknown);
  EXPECT_EQ(record(1).reconcile_attempts, 1u);
}

TEST_P(Reconciling, S19_a_provider_that_is_gone_is_reported_once_and_no_other_is_asked) {
  for (std::uint8_t key = 1; key < 4; ++key) {
    Reserve verb = reserve(key);
    verb.operation = "elsewhere";
    verb.provider = "gone";
    ask(MarkUnknown{id(key), std::get<Execute>(ask(verb)).attempt, "timeout", {}, ""});
  }
  auto reconciler = reconciler_of(*store_);
  reconciler.turn();
  reconciler.turn();
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(events_, std::vector<std::string>{"provider_missing"});
}

TEST_P(Reconciling, S19_an_operation_without_a_provider_is_left_to_people) {
  Reserve verb = reserve(1);
  verb.operation = "other";
  const auto attempt = std::get<Execute>(ask(verb)).attempt;
  ask(MarkUnknown{id(1), attempt, "timeout", {}, ""});
  turn();
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(record(1).reconcile_attempts, 0u);
}

TEST_P(Reconciling, S19_two_at_once_ask_once) {
  lose(1);
  reply_ = Provider::Answer{200, "{}"};
  on_ask_ = [this](const Record&) {
    on_ask_ = nullptr;
    turn();  // Another process's, while the first one's question is on its way.
  };
  turn();
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(record(1).state, State::completed);
}

TEST_P(Reconciling, S19_a_stale_nothing_there_does_not_free_a_newer_attempt) {
  const Attempt first = lose(1);
  pass(60s + 30s + 1ms);
  on_ask_ = [&](const Record&) {
    // Meanwhile an operator has settled it, and a retry has begun.
    const Resolve by_hand = freed_by_hand(first.fence);
    ASSERT_EQ(ask(by_hand).verdict, Resolve::Verdict::done);
    begin(1, 2);
  };
  turn();
  EXPECT_EQ(record(1).state, State::in_progress);
  const auto lines = story(1);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_FALSE(lines[1].applied);
  EXPECT_EQ(shard_.contradictions.value(), 0u) << "nothing there contradicts nothing";
}

TEST_P(Reconciling, S19_late_truth_about_an_earlier_attempt_is_an_alarm_and_overwrites_nothing) {
  const Attempt first = lose(1);
  pass(60s + 30s + 1ms);
  Attempt second;
  on_ask_ = [&](const Record&) {
    const Resolve by_hand = freed_by_hand(first.fence);
    ASSERT_EQ(ask(by_hand).verdict, Resolve::Verdict::done);
    second = begin(1, 2);
  };
  reply_ = Provider::Answer{200, "{}"};
  turn();
  EXPECT_EQ(record(1).attempt, second);
  EXPECT_EQ(record(1).state, State::in_progress);
  EXPECT_EQ(shard_.contradictions.value(), 1u);
  EXPECT_EQ(events_, std::vector<std::string>{"evidence_contradicts"});
  EXPECT_FALSE(story(1).back().applied);
  EXPECT_EQ(ask(Complete{id(1), second, {201, {}, "second"}, ""}).verdict, Verdict::done);
}

TEST_P(Reconciling, S19_the_owners_own_answer_comes_first_and_theirs_agrees) {
  const Attempt first = lose(1);
  on_ask_ = [&](const Record&) { ask(Complete{id(1), first, {201, {}, "mine"}, ""}); };
  reply_ = Provider::Answer{200, "theirs"};
  turn();
  EXPECT_EQ(record(1).response->body, "mine");
  EXPECT_EQ(shard_.contradictions.value(), 0u);
}

TEST_P(Reconciling, S19_two_sources_that_disagree_are_an_alarm) {
  const Attempt first = lose(1);
  pass(60s + 30s + 1ms);
  on_ask_ = [&](const Record&) { ask(Complete{id(1), first, {201, {}, "mine"}, ""}); };
  reply_ = Provider::Answer{402, "declined"};
  turn();
  EXPECT_EQ(record(1).response->status, 201);
  EXPECT_EQ(shard_.contradictions.value(), 1u);
}

TEST_P(Reconciling, S19_a_slow_owners_answer_after_nothing_there_completes_the_record) {
  const Attempt first = lose(1);
  pass(60s + 30s + 1ms);
  turn();
  ASSERT_EQ(record(1).state, State::failed_retryable);
  EXPECT_EQ(ask(Complete{id(1), first, {201, {}, "late"}, ""}).verdict, Verdict::done);
  EXPECT_EQ(record(1).response->body, "late");
}

TEST_P(Reconciling, S19_a_finding_without_a_usable_answer_waits_for_people) {
  lose(1);
  provider_->rebuild.body = "/payment";
  provider_->attempts_max = 1;
  reply_ = Provider::Answer{200, R"({"id":"ch_1"})"};
  turn();
  EXPECT_EQ(record(1).state, State::unknown);
  const auto log = story(1);
  ASSERT_EQ(log.size(), 2u);
  EXPECT_NE(log[0].evidence.find("found"), std::string::npos);
  EXPECT_NE(log[1].reason.find("the work was done"), std::string::npos);
}

TEST_P(Reconciling, S19_a_lease_that_ran_out_is_asked_about_without_a_plan) {
  begin(1);
  pass(61s);
  ask(Sweep{10});
  ASSERT_EQ(record(1).state, State::unknown);
  reply_ = Provider::Answer{200, "{}"};
  turn();
  EXPECT_EQ(record(1).state, State::completed);
}

INSTANTIATE_TEST_SUITE_P(Stores, Reconciling, stores_and({}), name_of_store);

}  // namespace
}  // namespace idem::test
