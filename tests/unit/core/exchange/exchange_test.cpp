#include "exchange_driver.hpp"

namespace idem::test {
namespace {

TEST(Exchange, S06_reserves_before_anything_else_then_dispatches_settles_and_only_then_answers) {
  ExchangeScript script;
  ASSERT_NE(script.asked<Reserve>(), nullptr);
  script.store_says(ReserveOutcome(Execute{some_reserve().id, script.attempt(), ""}));
  ASSERT_NE(script.as<Connect>(), nullptr);
  script.on(UpstreamReady{});
  ASSERT_NE(script.as<Send>(), nullptr);
  EXPECT_EQ(script.as<Send>()->attempt, script.attempt());
  script.on(script.answered(201));
  const auto* complete = script.asked<Complete>();
  ASSERT_NE(complete, nullptr);
  EXPECT_EQ(complete->attempt, script.attempt());
  EXPECT_EQ(complete->response.status, 201);
  EXPECT_EQ(complete->response.body, "body");
  script.store_says(script.done(State::completed, StoreTime{Millis{0}}));
  EXPECT_EQ(script.status(), 201);
  EXPECT_EQ(script.header("Idempotency-Outcome"), "stored");
  EXPECT_EQ(script.header("Idempotency-Expires"), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_FALSE(script.exchange().owes_settlement());
}

TEST(Exchange, S06_a_lease_that_no_longer_covers_the_timeout_is_released_unsent) {
  ExchangeScript script;
  script.store_says(ReserveOutcome(Execute{some_reserve().id, script.attempt(), ""}));
  script.advance(lease - dispatch_timeout + Millis{1});
  script.on(UpstreamReady{});
  const auto* release = script.asked<Release>();
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release->basis, ReleaseBasis::proven);
  script.store_says(script.done(State::failed_retryable));
  EXPECT_EQ(script.status(), 503);
  EXPECT_TRUE(script.body_has("\"retry\":\"same_key\""));
}

TEST(Exchange, S06_the_lease_counts_from_before_the_reserve_was_asked) {
  ExchangeScript script;
  script.advance(lease - dispatch_timeout);  // The reserve's reply took all the slack there was.
  script.store_says(ReserveOutcome(Execute{some_reserve().id, script.attempt(), ""}));
  script.advance(Millis{1});
  script.on(UpstreamReady{});
  EXPECT_NE(script.asked<Release>(), nullptr);
}

TEST(Exchange, S11_with_a_separate_mark_nothing_is_sent_before_the_mark_is_durable) {
  ExchangeScript script(false);
  script.store_says(ReserveOutcome(Execute{some_reserve().id, script.attempt(), ""}));
  ASSERT_NE(script.asked<Dispatched>(), nullptr);
  script.store_says(script.done(State::in_progress));
  EXPECT_NE(script.as<Connect>(), nullptr);
}

TEST(Exchange, S11_a_lost_mark_is_released_because_nothing_was_sent) {
  ExchangeScript script(false);
  script.store_says(ReserveOutcome(Execute{some_reserve().id, script.attempt(), ""}));
  script.store_fails(StoreError::Code::in_doubt);
  EXPECT_NE(script.asked<Release>(), nullptr);
}

TEST(Exchange, T20_an_upstream_that_was_never_reached_is_a_proven_release) {
  ExchangeScript script;
  script.store_says(ReserveOutcome(Execute{some_reserve().id, script.attempt(), ""}));
  script.on(UpstreamNotReached{"refused"});
  const auto* release = script.asked<Release>();
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release->basis, ReleaseBasis::proven);
  script.store_says(script.done(State::failed_retryable));
  EXPECT_EQ(script.status(), 503);
  EXPECT_TRUE(script.body_has("upstream_unreachable"));
  EXPECT_FALSE(script.header("Retry-After").empty());
}

struct LostCase {
  UpstreamLost::How how;
  int status;
};
class ExchangeLost : public testing::TestWithParam<LostCase> {};
TEST_P(ExchangeLost, S11_whatever_is_lost_after_a_byte_was_sent_is_unknown) {
  ExchangeScript script;
  script.until_sent();
  script.on(UpstreamLost{GetParam().how, 200});
  ASSERT_NE(script.asked<MarkUnknown>(), nullptr);
  script.store_says(script.done(State::unknown));
  EXPECT_EQ(script.status(), GetParam().status);
  EXPECT_TRUE(script.body_has("outcome_unknown"));
  EXPECT_TRUE(script.body_has("\"retry\":\"never\""));
  EXPECT_EQ(script.header("Retry-After"), "");
}
INSTANTIATE_TEST_SUITE_P(How, ExchangeLost,
                         testing::Values(LostCase{UpstreamLost::How::timeout, 504},
                                         LostCase{UpstreamLost::How::closed, 502},
                                         LostCase{UpstreamLost::How::malformed, 502},
                                         LostCase{UpstreamLost::How::cut, 502},
                                         LostCase{UpstreamLost::How::unframed, 502}));

TEST_P(ExchangeLost, S03_under_rerun_it_is_left_for_the_next_attempt_once_its_lease_is_over) {
  ExchangeScript script(LeasePolicy::rerun);
  script.until_sent();
  script.advance(Millis{10'000});
  script.on(UpstreamLost{GetParam().how, 200});
  ASSERT_NE(script.asked<Find>(), nullptr);
  Record record;
  record.state = State::in_progress;
  script.store_says(std::optional<Record>(record));
  EXPECT_EQ(script.status(), 409);
  EXPECT_TRUE(script.body_has("in_progress"));
  EXPECT_EQ(script.header("Retry-After"), "50");
  EXPECT_FALSE(script.owes());
}

// An attempt in phases may have resumed the work of others: its own inaction proves nothing.
TEST(Exchange, S16_under_resume_nothing_is_released_that_was_not_done) {
  ExchangeScript script(LeasePolicy::resume);
  script.store_says(ReserveOutcome(Execute{some_reserve().id, script.attempt(), "charged", true}));
  script.advance(lease + Millis{1});
  script.on(UpstreamReady{});
  ASSERT_NE(script.asked<Find>(), nullptr);
  ExchangeScript in_doubt(LeasePolicy::resume);
  in_doubt.store_fails(StoreError::Code::in_doubt);
  in_doubt.on(ClientDeadline{});
  EXPECT_EQ(in_doubt.status(), 503);
  EXPECT_FALSE(in_doubt.owes());
}

TEST(Exchange, T32_credentials_reach_the_first_caller_and_never_the_store) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(200, {{"Set-Cookie", "s=1"},
                                  {"Content-Type", "text/plain"},
                                  {"WWW-Authenticate", "Basic"},
                                  {"Proxy-Status", "x"},
                                  {"Location", "/a"}}));
  const auto* complete = script.asked<Complete>();
  ASSERT_NE(complete, nullptr);
  EXPECT_EQ(complete->response.headers,
            (std::vector<Field>{{"Content-Type", "text/plain"}, {"Location", "/a"}}));
  script.store_says(script.done(State::completed, StoreTime{}));
  EXPECT_EQ(script.header("Set-Cookie"), "s=1");
}

TEST(Exchange, S07_each_outcome_of_a_duplicate_has_its_answer) {
  const RecordId id = some_reserve().id;
  const auto answer_to = [&](ReserveOutcome outcome) {
    ExchangeScript script;
    script.store_says(std::move(outcome));
    return script;
  };
  EXPECT_EQ(answer_to(InProgress{Millis{4'200}}).header("Retry-After"), "5");
  EXPECT_EQ(answer_to(InProgress{Millis{4'200}}).status(), 409);
  EXPECT_EQ(answer_to(KeyMisuse{State::in_progress, true, id}).status(), 422);
  EXPECT_EQ(answer_to(Unknown{StoreTime{}, std::nullopt}).status(), 409);
  EXPECT_EQ(answer_to(Unknown{StoreTime{}, std::nullopt}).header("Retry-After"), "");
  EXPECT_EQ(answer_to(Unknown{StoreTime{}, Millis{9'000}}).header("Retry-After"), "9");
  EXPECT_TRUE(answer_to(Unknown{StoreTime{}, Millis{9'000}}).body_has("\"retry\":\"later\""));
  EXPECT_EQ(answer_to(Expired{StoreTime{}}).status(), 410);
  EXPECT_EQ(answer_to(Pending{id}).status(), 202);
  EXPECT_EQ(answer_to(Pending{id}).header("Location"), "/.idem/operations/" + to_hex(id.bytes));
  EXPECT_EQ(answer_to(QuotaExceeded{Millis{1'000}}).status(), 429);
  const auto replayed =
      answer_to(Replay{{402, {{"X-A", "b"}}, "declined", true}, StoreTime{}, StoreTime{}});
  EXPECT_EQ(replayed.status(), 402);
  EXPECT_EQ(replayed.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(replayed.header("X-A"), "b");
  EXPECT_TRUE(replayed.body_has("declined"));
}

TEST(Exchange, S12_an_answer_that_was_not_kept_is_reported_with_its_status_and_location) {
  ExchangeScript script;
  script.store_says(ReserveOutcome(Replay{{201, {{"Location", "/p/1"}}, "", false}, {}, {}}));
  EXPECT_EQ(script.status(), 409);
  EXPECT_TRUE(script.body_has("response_not_stored"));
  EXPECT_TRUE(script.body_has("\"original_status\":201"));
  EXPECT_EQ(script.header("Location"), "/p/1");
}

TEST(Exchange, S12_oversize_completes_durably_without_a_body_before_streaming) {
  ExchangeScript script;
  script.until_sent();
  script.on(UpstreamOversize{script.answered(200)});
  const auto* complete = script.asked<Complete>();
  ASSERT_NE(complete, nullptr);
  EXPECT_FALSE(complete->response.body_stored);
  EXPECT_TRUE(complete->response.body.empty());
  script.store_says(script.done(State::completed, StoreTime{}));
  EXPECT_NE(script.as<StreamThrough>(), nullptr);
}

// An answer too large to keep was stored as completed whatever it said.
TEST(Exchange, S12_an_oversize_answer_has_the_meaning_of_its_status) {
  const auto asked = [](int status, std::optional<DeclaredOutcome> declared = {}) {
    ExchangeScript script;
    script.until_sent();
    auto head = script.answered(status);
    head.declared = declared;
    script.on(UpstreamOversize{head});
    return script;
  };
  EXPECT_NE(asked(500).asked<MarkUnknown>(), nullptr);
  EXPECT_NE(asked(429).asked<Release>(), nullptr);
  EXPECT_NE(asked(421).asked<Release>(), nullptr);
  EXPECT_NE(asked(503, DeclaredOutcome::not_executed).asked<Release>(), nullptr);
  auto script = asked(500);
  script.store_says(script.done(State::unknown));
  EXPECT_NE(script.as<StreamThrough>(), nullptr);
}

TEST(Exchange, V27_renews_at_a_third_of_the_lease_and_only_while_the_attempt_runs) {
  ExchangeScript script;
  EXPECT_FALSE(script.exchange().heartbeat(script.now() + lease));  // Still reserving.
  script.until_sent();
  EXPECT_FALSE(script.exchange().heartbeat(script.now() + lease / 3 - Millis{1}));
  const auto renew = script.exchange().heartbeat(script.now() + lease / 3);
  ASSERT_TRUE(renew);
  EXPECT_EQ(renew->attempt, script.attempt());
  EXPECT_EQ(renew->lease, lease);
  EXPECT_FALSE(script.exchange().heartbeat(script.now() + lease / 3));  // Not twice.
  script.on(script.answered(200));
  script.store_says(script.done(State::completed, StoreTime{}));
  EXPECT_FALSE(script.exchange().heartbeat(script.now() + lease));  // T13: not after completion.
}

}  // namespace
}  // namespace idem::test
