#include "around_failing.hpp"

#include <future>

/// A store that hangs fails no call.
namespace idem::breaking {
namespace {

class HangingStore : public AroundFailing {};

TEST_F(HangingStore, S04_a_call_without_a_reply_opens_the_circuit) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  EXPECT_EQ(asked(reserve(1)), Code::unavailable);
  wait_for_changes(1);
  EXPECT_EQ(changes_, std::vector<std::string>{"no reply for 20 ms"});
  EXPECT_FALSE(store_->health().answers);
  EXPECT_EQ(asked(reserve(2)), Code::unavailable);
  EXPECT_EQ(asked(Find{}), Code::unavailable);
  EXPECT_EQ(inner_->calls(), 1) << "nothing more is asked of it";
  EXPECT_EQ(asked(Complete{}), Code::in_doubt) << "an owner's verb is, and may be applied later";
  EXPECT_EQ(inner_->calls(), 2);
}

TEST_F(HangingStore, S04_a_read_without_a_reply_opens_it_too) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  EXPECT_EQ(asked(Count{}), Code::unavailable);
  wait_for_changes(1);
  inner_->let_go(std::nullopt);
  wait_for_changes(2);
  EXPECT_TRUE(store_->health().answers);
}

TEST_F(HangingStore, S04_an_attempt_that_is_granted_too_late_is_released_by_token_and_fence) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  Reserve verb = reserve(executed);
  verb.id = an_id(3);
  verb.lease = for_ever;
  EXPECT_EQ(asked(verb), Code::unavailable);
  EXPECT_EQ(asked(Accept{verb, {}}), Code::unavailable) << "it is open";
  wait_for_changes(1);
  inner_->behave({std::nullopt});
  inner_->let_go(std::nullopt);
  const auto releases = inner_->wait_for_releases(1);
  ASSERT_EQ(releases.size(), 1U);
  EXPECT_EQ(releases[0].id, an_id(3));
  EXPECT_EQ(releases[0].attempt, (AttemptRef{its_fence, verb.token}));
  EXPECT_EQ(releases[0].basis, ReleaseBasis::proven);
  wait_for_changes(2);
  EXPECT_TRUE(store_->health().answers) << "what came late was written";
}

TEST_F(HangingStore, S04_a_request_that_is_claimed_too_late_is_released) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  Claim verb;
  verb.token.bytes[0] = 7;
  EXPECT_EQ(asked(verb), Code::unavailable);
  inner_->let_go(std::nullopt);
  const auto releases = inner_->wait_for_releases(1);
  EXPECT_EQ(releases[0].id, an_id(9));
  EXPECT_EQ(releases[0].attempt, (AttemptRef{its_fence, verb.token}));
}

// The other phases of such work may have committed.
TEST_F(HangingStore, S04_work_in_phases_that_is_granted_too_late_is_left_to_its_lease) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  Reserve verb = reserve(executed);
  verb.lease_policy = LeasePolicy::resume;
  EXPECT_EQ(asked(verb), Code::in_doubt);
  wait_for_changes(1);  // One that is over before it was reported is not.
  inner_->let_go(std::nullopt);
  wait_for_changes(2);
  EXPECT_EQ(inner_->calls(), 1);
}

TEST_F(HangingStore, S04_a_release_of_such_an_attempt_is_tried_until_the_store_takes_it) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  EXPECT_EQ(asked(reserve(executed)), Code::unavailable);
  inner_->behave({Code::unavailable});
  inner_->let_go(std::nullopt);
  inner_->wait_for_releases(4);
  inner_->behave({std::nullopt, false, false, Verdict::stale});
  const std::size_t tried = inner_->wait_for_releases(5).size();
  // With its fence the attempt was there: it has another one now.
  EXPECT_EQ(asked(release({})), std::nullopt);
  EXPECT_LE(inner_->wait_for_releases(tried).size(), tried + 2);
}

// A server may commit what it was asked for when its connection is long gone.
TEST_F(HangingStore, S04_a_late_reserve_whose_reply_is_lost_is_looked_for_under_all_its_names) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  Reserve verb = reserve(3);
  verb.id = an_id(1);
  verb.also = {{an_id(2)}};
  verb.lease = for_ever;
  EXPECT_EQ(asked(verb), Code::unavailable);
  inner_->behave({std::nullopt, false, false, Verdict::stale});
  inner_->let_go(Code::in_doubt);
  auto releases = inner_->wait_for_releases(6);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(releases[i].id, an_id(i % 2 == 0 ? 1 : 2));
    EXPECT_EQ(releases[i].attempt, (AttemptRef{std::nullopt, verb.token}));
  }
  inner_->behave({std::nullopt});
  const std::size_t before = inner_->wait_for_releases(6).size();
  releases = inner_->wait_for_releases(before + 1);
  EXPECT_LE(releases.size(), before + 2) << "it was found, and is looked for no more";
}

TEST_F(HangingStore, S04_a_repeat_of_what_the_store_still_has_is_not_asked_beside_it) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  const Attempt attempt{its_fence, reserve(4).token};
  EXPECT_EQ(asked(Complete{{}, attempt, {}, {}}), Code::in_doubt);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(asked(Complete{{}, attempt, {}, {}}), Code::unavailable);
  }
  EXPECT_EQ(inner_->calls(), 1);
  EXPECT_EQ(asked(Renew{{}, attempt, {}}), Code::in_doubt) << "another verb is asked";
  EXPECT_EQ(inner_->calls(), 2);
  inner_->behave({std::nullopt});
  inner_->let_go(std::nullopt);
  EXPECT_EQ(asked(Complete{{}, attempt, {}, {}}), std::nullopt) << "and now the repeat";
}

TEST_F(HangingStore, S04_a_disk_that_reads_and_hangs_on_writes_stays_given_up) {
  open(1ms, 20ms);
  inner_->behave({std::nullopt, true, true});
  EXPECT_EQ(asked(reserve(executed)), Code::unavailable);
  const int before = inner_->finds();
  inner_->wait_for_finds(before + 5);
  EXPECT_FALSE(store_->health().answers);
  inner_->behave({std::nullopt});
  inner_->let_go(std::nullopt);
  wait_for_changes(2);
  EXPECT_TRUE(store_->health().answers);
  EXPECT_EQ(changes_, (std::vector<std::string>{"no reply for 20 ms", "back"}));
}

TEST_F(HangingStore, S04_a_call_that_may_take_long_is_waited_for_while_the_store_answers) {
  open(for_ever, 5ms);
  inner_->behave({std::nullopt, true, true});
  std::promise<StoreResult> listed;
  auto list = listed.get_future();
  store_->call(StoreCall(List{}), [&](StoreResult reply) { listed.set_value(std::move(reply)); });
  inner_->wait_for_finds(3);  // Each asks whether the store answers others meanwhile.
  EXPECT_TRUE(store_->health().answers);
  inner_->let_go(std::nullopt);
  EXPECT_TRUE(list.get());
}

TEST_F(HangingStore, S04_a_large_answer_may_take_long) {
  open(for_ever, 5ms);
  inner_->behave({std::nullopt, true, true});
  Complete verb;
  verb.response.body.assign(limits::store_quick_bytes_max + 1, 'x');
  std::promise<StoreResult> ended;
  auto end = ended.get_future();
  store_->call(StoreCall(verb), [&](StoreResult reply) { ended.set_value(std::move(reply)); });
  inner_->wait_for_finds(3);
  EXPECT_TRUE(store_->health().answers);
  inner_->let_go(std::nullopt);
  EXPECT_TRUE(end.get());
}

// Nobody else asks: a sweep is the first to notice, and must not wait for the disk's return.
TEST_F(HangingStore, S04_a_call_that_may_take_long_ends_when_the_store_answers_nobody) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  EXPECT_EQ(asked(Sweep{}), Code::in_doubt);
  wait_for_changes(1);
  EXPECT_EQ(asked(AppendLine{}), Code::in_doubt) << "a decision is noted, or nobody knows";
  EXPECT_EQ(asked(ReadLines{}), Code::unavailable);
}

TEST_F(HangingStore, S04_an_adoption_of_routes_is_waited_for_as_long_as_it_takes) {
  open(for_ever, 5ms);
  inner_->behave({std::nullopt, true});
  std::promise<StoreResult> adopted;
  auto adoption = adopted.get_future();
  store_->call(StoreCall(AdoptRoutes{}),
               [&](StoreResult reply) { adopted.set_value(std::move(reply)); });
  EXPECT_EQ(asked(Find{}), Code::unavailable);
  EXPECT_EQ(asked(Sweep{}), Code::unavailable) << "it is open";
  EXPECT_EQ(asked(Renew{}), Code::in_doubt);
  EXPECT_EQ(adoption.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  inner_->let_go(std::nullopt);
  EXPECT_TRUE(adoption.get());
}

TEST_F(HangingStore, S04_a_store_that_closes_with_late_calls_releases_what_they_grant) {
  open(for_ever, 20ms);
  inner_->behave({std::nullopt, true});
  EXPECT_EQ(asked(reserve(executed)), Code::unavailable);
  inner_->let_go_at_end(std::nullopt);
  const auto released = inner_->released_at_end();
  store_.reset();
  EXPECT_EQ(released->load(), 1);
}

}  // namespace
}  // namespace idem::breaking
