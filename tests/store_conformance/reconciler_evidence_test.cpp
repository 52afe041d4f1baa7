#include "store_conformance/reconciling.hpp"

/// The reconciler with evidence from several sides: kept, contradicting, or about an attempt
/// that it does not name.
namespace idem::test {
namespace {

TEST_P(Reconciling, S19_an_executed_attempt_without_a_usable_answer_is_not_freed_by_an_absence) {
  lose(1);
  provider_->rebuild.body = "/payment";
  reply_ = Provider::Answer{200, R"({"id":"ch_1"})"};
  turn();
  EXPECT_EQ(record(1).state, State::unknown);
  EXPECT_FALSE(record(1).reconcile_after) << "people know what to tell";
  EXPECT_EQ(events_, std::vector<std::string>{"reconcile_given_up"});

  lose(2);
  Resolve executed;
  executed.id = id(2);
  executed.fence = record(2).fence();
  executed.observed_at = now();
  EXPECT_EQ(ask(executed).verdict, Resolve::Verdict::missing_response);
  pass(60s + 30s + 1ms);
  reply_ = Provider::Answer{404, ""};
  turn();
  EXPECT_EQ(record(2).state, State::unknown) << "an index that lags";
  EXPECT_EQ(shard_.contradictions.value(), 1u);
  EXPECT_FALSE(record(2).reconcile_after);
}

TEST_P(Reconciling, S19_an_attempt_reported_as_executed_gets_no_refusal_as_its_answer) {
  reply_ = Provider::Answer{402, "declined"};
  const Attempt mute = begin(1);
  record_event(1, mute.fence, Finding::found, 0);
  ask(MarkUnknown{id(1), mute, "timeout", {}, ""});
  const Attempt torn = begin(2);
  record_event(2, torn.fence, Finding::failed, 402);
  record_event(2, torn.fence, Finding::found, 0);
  ask(MarkUnknown{id(2), torn, "timeout", {}, ""});
  pass(60s + 30s + 1ms);
  turn();
  EXPECT_EQ(asked_, 2);
  for (const std::uint8_t key : {1, 2}) {
    EXPECT_EQ(record(key).state, State::unknown) << "money moved, and no refusal tells of that";
    EXPECT_FALSE(record(key).reconcile_after);
    EXPECT_NE(story(key).back().reason.find("says otherwise"), std::string::npos);
  }
  EXPECT_EQ(shard_.contradictions.value(), 2u);
}

TEST_P(Reconciling, S19_a_kept_refusal_is_no_answer_to_an_attempt_reported_as_executed) {
  const Attempt attempt = begin(1);
  record_event(1, attempt.fence, Finding::failed, 402);
  record_event(1, std::nullopt, Finding::found, 0);
  ask(MarkUnknown{id(1), attempt, "timeout", {}, ""});
  turn();
  EXPECT_EQ(record(1).state, State::unknown) << "it was done, says one that names no attempt";
  EXPECT_FALSE(record(1).reconcile_after);
  EXPECT_EQ(shard_.contradictions.value(), 1u);

  // A person's evidence counts as much.
  lose(2);
  Resolve known;
  known.id = id(2);
  known.fence = record(2).fence();
  known.source = "operator";
  known.observed_at = now();
  EXPECT_EQ(ask(known).verdict, Resolve::Verdict::missing_response);
  pass(60s + 30s + 1ms);
  reply_ = Provider::Answer{402, "declined"};
  turn();
  EXPECT_EQ(record(2).state, State::unknown);
  EXPECT_FALSE(record(2).reconcile_after);
  EXPECT_EQ(shard_.contradictions.value(), 2u);
}

TEST_P(Reconciling, S19_an_attempt_reported_as_failed_is_not_freed_by_an_absence) {
  lose(1);
  record_event(1, record(1).fence(), Finding::failed, 0);
  pass(60s + 30s + 1ms);
  turn();
  EXPECT_EQ(record(1).state, State::unknown) << "an index that lags";
  EXPECT_FALSE(record(1).reconcile_after);
  EXPECT_EQ(shard_.contradictions.value(), 1u);
  lose(2);
  record_event(2, record(2).fence(), Finding::failed, 0);
  pass(60s + 30s + 1ms);
  reply_ = Provider::Answer{402, "declined"};
  turn();
  ASSERT_EQ(record(2).state, State::completed) << "both say that it was refused";
  EXPECT_EQ(record(2).response->status, 402);
}

TEST_P(Reconciling, S19_the_provider_is_asked_for_the_answer_of_an_attempt_reported_as_executed) {
  const auto lose_reported = [&](std::uint8_t key) {
    const Attempt attempt = begin(key);
    record_event(key, attempt.fence, Finding::found, 0);
    ask(MarkUnknown{id(key), attempt, "timeout", {}, ""});
  };
  lose_reported(1);
  reply_ = Provider::Answer{200, "{}"};
  turn();
  EXPECT_EQ(record(1).state, State::completed);

  lose_reported(2);
  pass(60s + 30s + 1ms);
  reply_ = Provider::Answer{404, ""};
  turn();
  EXPECT_EQ(record(2).state, State::unknown) << "an index that lags";
  EXPECT_FALSE(record(2).reconcile_after);

  provider_->ask = nullptr;
  lose_reported(3);
  turn();
  EXPECT_EQ(record(3).state, State::unknown);
  EXPECT_FALSE(record(3).reconcile_after);
  EXPECT_NE(story(3).back().reason.find("has no response to replay"), std::string::npos);
}

TEST_P(Reconciling, S19_evidence_after_the_last_look_is_seen_by_the_store) {
  lose(1);
  pass(60s + 30s + 1ms);
  reply_ = Provider::Answer{402, "declined"};
  // Between the look at the log and the step: as the last thing before it.
  Intruding store(*store_, StoreCall(Resolve{}).index(),
                  [this] { record_event(1, record(1).fence(), Finding::found, 0); });
  auto reconciler = reconciler_of(store);
  reconciler.turn();
  EXPECT_EQ(record(1).state, State::unknown);
  EXPECT_FALSE(record(1).reconcile_after);
  EXPECT_EQ(shard_.contradictions.value(), 1u);

  lose(2);
  pass(60s + 30s + 1ms);
  Intruding agreeing(*store_, StoreCall(Resolve{}).index(),
                     [this] { record_event(2, record(2).fence(), Finding::failed, 0); });
  auto second = reconciler_of(agreeing);
  second.turn();
  ASSERT_EQ(record(2).state, State::completed) << "both say that it was refused";
  EXPECT_EQ(record(2).response->status, 402);
  EXPECT_EQ(shard_.contradictions.value(), 1u);
}

TEST_P(Reconciling, S19_evidence_during_the_question_forbids_to_free_or_refuse_the_record) {
  // It names no attempt: no answer of it is applied, and the store does not know whose it is.
  on_ask_ = [this](const Record& asked) {
    Resolve verb;
    verb.id = asked.id;
    verb.source = "event:bank";
    verb.evidence = R"({"event":"msg","said":"found"})";
    verb.observed_at = now();
    EXPECT_EQ(ask(verb).verdict, Resolve::Verdict::wrong_fence);
  };
  lose(1);
  turn();
  EXPECT_TRUE(record(1).reconcile_after) << "it may be shown yet";
  EXPECT_EQ(shard_.contradictions.value(), 0u);
  pass(60s + 30s + 1ms);
  turn();
  lose(2);
  pass(60s + 30s + 1ms);
  reply_ = Provider::Answer{402, "declined"};
  turn();
  EXPECT_EQ(asked_, 3);
  for (const std::uint8_t key : {1, 2}) {
    EXPECT_EQ(record(key).state, State::unknown);
    EXPECT_FALSE(record(key).reconcile_after);
  }
  EXPECT_EQ(shard_.contradictions.value(), 2u);
}

TEST_P(Reconciling, S19_a_second_charge_is_an_alarm_also_behind_the_second_answer) {
  const Attempt first = lose(1);
  pass(60s + 30s + 1ms);
  on_ask_ = [&](const Record&) {
    ASSERT_EQ(ask(freed_by_hand(first.fence)).verdict, Resolve::Verdict::done);
    const Attempt second = begin(1, 2);
    ask(Complete{id(1), second, {201, {}, "second"}, ""});
  };
  reply_ = Provider::Answer{200, "{}"};
  turn();
  EXPECT_EQ(record(1).response->body, "second");
  EXPECT_EQ(shard_.contradictions.value(), 1u);
}

}  // namespace
}  // namespace idem::test
