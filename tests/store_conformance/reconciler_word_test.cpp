#include "store_conformance/reconciling.hpp"

/// What the reconciler makes of word from several sides: kept, contradicting, or about an attempt
/// that it does not tell.
namespace idem::test {
namespace {

TEST_P(Reconciling, S19_what_was_done_and_cannot_be_told_is_not_freed_by_an_absence) {
  lose(1);
  provider_->rebuild.body = "/payment";
  says_ = Provider::Heard{200, R"({"id":"ch_1"})"};
  turn();
  EXPECT_EQ(record(1).state, State::unknown);
  EXPECT_FALSE(record(1).reconcile_after) << "people know what to tell";
  EXPECT_EQ(events_, std::vector<std::string>{"reconcile_given_up"});

  lose(2);
  Resolve told;
  told.id = id(2);
  told.fence = record(2).attempt.fence;
  told.observed_at = now();
  EXPECT_EQ(ask(told).verdict, Resolve::Verdict::missing_response);
  pass(60s + 30s + 1ms);
  says_ = Provider::Heard{404, ""};
  turn();
  EXPECT_EQ(record(2).state, State::unknown) << "an index that lags";
  EXPECT_EQ(shard_.contradictions.value(), 1u);
  EXPECT_FALSE(record(2).reconcile_after);
}

TEST_P(Reconciling, S19_what_was_said_to_be_done_takes_no_refusal_for_its_answer) {
  says_ = Provider::Heard{402, "declined"};
  const Attempt mute = begin(1);
  tell(1, mute.fence, Finding::found, 0);
  ask(MarkUnknown{id(1), mute, "timeout", {}, ""});
  const Attempt torn = begin(2);
  tell(2, torn.fence, Finding::failed, 402);
  tell(2, torn.fence, Finding::found, 0);
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

TEST_P(Reconciling, S19_a_refusal_that_was_kept_is_no_answer_to_what_was_said_to_be_done) {
  const Attempt told = begin(1);
  tell(1, told.fence, Finding::failed, 402);
  tell(1, 0, Finding::found, 0);
  ask(MarkUnknown{id(1), told, "timeout", {}, ""});
  turn();
  EXPECT_EQ(record(1).state, State::unknown) << "it was done, says one that names no attempt";
  EXPECT_FALSE(record(1).reconcile_after);
  EXPECT_EQ(shard_.contradictions.value(), 1u);

  // What a person knows counts as much.
  lose(2);
  Resolve known;
  known.id = id(2);
  known.fence = record(2).attempt.fence;
  known.source = "operator";
  known.observed_at = now();
  EXPECT_EQ(ask(known).verdict, Resolve::Verdict::missing_response);
  pass(60s + 30s + 1ms);
  says_ = Provider::Heard{402, "declined"};
  turn();
  EXPECT_EQ(record(2).state, State::unknown);
  EXPECT_FALSE(record(2).reconcile_after);
  EXPECT_EQ(shard_.contradictions.value(), 2u);
}

TEST_P(Reconciling, S19_what_was_said_to_have_failed_is_not_freed_by_an_absence) {
  lose(1);
  tell(1, record(1).attempt.fence, Finding::failed, 0);
  pass(60s + 30s + 1ms);
  turn();
  EXPECT_EQ(record(1).state, State::unknown) << "an index that lags";
  EXPECT_FALSE(record(1).reconcile_after);
  EXPECT_EQ(shard_.contradictions.value(), 1u);
  lose(2);
  tell(2, record(2).attempt.fence, Finding::failed, 0);
  pass(60s + 30s + 1ms);
  says_ = Provider::Heard{402, "declined"};
  turn();
  ASSERT_EQ(record(2).state, State::completed) << "both say that it was refused";
  EXPECT_EQ(record(2).response->status, 402);
}

TEST_P(Reconciling, S19_who_can_be_asked_has_the_answer_of_what_was_said_to_be_done) {
  const auto lose_told = [&](std::uint8_t key) {
    const Attempt attempt = begin(key);
    tell(key, attempt.fence, Finding::found, 0);
    ask(MarkUnknown{id(key), attempt, "timeout", {}, ""});
  };
  lose_told(1);
  says_ = Provider::Heard{200, "{}"};
  turn();
  EXPECT_EQ(record(1).state, State::completed);

  lose_told(2);
  pass(60s + 30s + 1ms);
  says_ = Provider::Heard{404, ""};
  turn();
  EXPECT_EQ(record(2).state, State::unknown) << "an index that lags";
  EXPECT_FALSE(record(2).reconcile_after);

  provider_->ask = nullptr;
  lose_told(3);
  turn();
  EXPECT_EQ(record(3).state, State::unknown);
  EXPECT_FALSE(record(3).reconcile_after);
  EXPECT_NE(story(3).back().reason.find("has no response to replay"), std::string::npos);
}

TEST_P(Reconciling, S19_word_that_comes_behind_the_last_look_is_heard_by_the_store) {
  lose(1);
  pass(60s + 30s + 1ms);
  says_ = Provider::Heard{402, "declined"};
  // Between the look at the log and the step: as the last thing before it.
  Intruding store(*store_, StoreCall(Resolve{}).index(),
                  [this] { tell(1, record(1).attempt.fence, Finding::found, 0); });
  auto reconciler = reconciler_of(store);
  reconciler.turn();
  EXPECT_EQ(record(1).state, State::unknown);
  EXPECT_FALSE(record(1).reconcile_after);
  EXPECT_EQ(shard_.contradictions.value(), 1u);

  lose(2);
  pass(60s + 30s + 1ms);
  Intruding agreeing(*store_, StoreCall(Resolve{}).index(),
                     [this] { tell(2, record(2).attempt.fence, Finding::failed, 0); });
  auto second = reconciler_of(agreeing);
  second.turn();
  ASSERT_EQ(record(2).state, State::completed) << "both say that it was refused";
  EXPECT_EQ(record(2).response->status, 402);
  EXPECT_EQ(shard_.contradictions.value(), 1u);
}

TEST_P(Reconciling, S19_word_that_comes_while_it_is_asked_forbids_to_free_it_and_to_refuse_it) {
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
  says_ = Provider::Heard{402, "declined"};
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
  says_ = Provider::Heard{200, "{}"};
  turn();
  EXPECT_EQ(record(1).response->body, "second");
  EXPECT_EQ(shard_.contradictions.value(), 1u);
}

}  // namespace
}  // namespace idem::test
