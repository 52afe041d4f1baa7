#include "exchange_driver.hpp"

/// protocol.md §4: what the machine does when the store's reply is lost or late.
namespace idem::test {
namespace {

using Code = StoreError::Code;

Record completed_record(Attempt attempt, StoredResponse response) {
  Record record;
  record.id = some_reserve().id;
  record.state = State::completed;
  record.attempt = attempt;
  record.response = std::move(response);
  record.completed_at = StoreTime{};
  record.expires_at = StoreTime{Millis{1000}};
  return record;
}

TEST(ExchangeDoubt, V15_an_unavailable_store_means_503_and_nothing_dispatched) {
  ExchangeScript script;
  script.store_fails(Code::unavailable);
  EXPECT_EQ(script.status(), 503);
  EXPECT_TRUE(script.body_has("store_unavailable"));
  EXPECT_FALSE(script.header("Retry-After").empty());
  EXPECT_FALSE(script.exchange().owes_settlement());
}

TEST(ExchangeDoubt, S04_a_reserve_in_doubt_is_repeated_with_the_same_token) {
  ExchangeScript script;
  script.store_fails(Code::in_doubt);
  ASSERT_NE(script.as<AskLater>(), nullptr);
  script.on(RetryDue{});
  ASSERT_NE(script.asked<Reserve>(), nullptr);
  EXPECT_EQ(script.asked<Reserve>()->token, some_reserve().token);
  script.until_sent();
  EXPECT_NE(script.as<Send>(), nullptr);
}

TEST(ExchangeDoubt, S04_a_reserve_in_doubt_that_is_given_up_is_released_by_token_later) {
  ExchangeScript script;
  script.store_fails(Code::in_doubt);
  script.on(RetryDue{});
  script.store_fails(Code::unavailable);
  EXPECT_EQ(script.status(), 503);
  ASSERT_TRUE(script.exchange().owes_settlement());
  script.on(RetryDue{});
  const auto* release = script.asked<Release>();
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release->attempt, (AttemptRef{std::nullopt, some_reserve().token}));
  EXPECT_EQ(release->basis, ReleaseBasis::proven);
  script.store_fails(Code::unavailable);
  ASSERT_NE(script.as<AskLater>(), nullptr);
  script.on(RetryDue{});
  script.store_says(script.done(State::failed_retryable));
  EXPECT_NE(script.as<Done>(), nullptr);
  EXPECT_FALSE(script.exchange().owes_settlement());
}

TEST(ExchangeDoubt, S04_unknown_after_doubt_may_be_our_own_unsent_reservation) {
  ExchangeScript script;
  script.store_fails(Code::in_doubt);
  script.on(RetryDue{});
  script.store_says(ReserveOutcome(Unknown{StoreTime{}, std::nullopt}));
  ASSERT_NE(script.asked<Release>(), nullptr);
  script.store_says(script.done(State::failed_retryable));
  EXPECT_EQ(script.status(), 503);
}

TEST(ExchangeDoubt, S04_a_reservation_in_doubt_is_released_under_whatever_name_it_lies) {
  Reserve reserve = some_reserve();
  RecordId older;
  older.bytes[0] = 8;
  reserve.also = {{older}};
  Exchange exchange({.dispatch_timeout = dispatch_timeout, .renew_interval = lease / 3}, reserve);
  const MonotonicTime now{};
  const auto fail = [&](Code code) {
    return exchange.on(StoreAnswered{std::unexpected(StoreError{code, "x"})}, now);
  };
  exchange.start(now);
  fail(Code::in_doubt);
  exchange.on(RetryDue{}, now);
  fail(Code::unavailable);
  ASSERT_TRUE(exchange.owes_settlement());
  const auto released = [](const ExchangeAction& action) {
    return std::get<Release>(std::get<Ask>(action).call).id;
  };
  EXPECT_EQ(released(exchange.on(RetryDue{}, now)), reserve.id);
  const StoreReply stale = OwnerReply{Verdict::stale, {}, {}};
  EXPECT_EQ(released(exchange.on(StoreAnswered{stale}, now)), older);
  EXPECT_EQ(released(exchange.on(RetryDue{}, now)), older) << "a repeat goes on where it was";
  EXPECT_TRUE(std::holds_alternative<Done>(exchange.on(StoreAnswered{stale}, now)));
}

TEST(ExchangeDoubt, S04_unknown_after_doubt_of_another_attempt_stays_unknown) {
  ExchangeScript script;
  script.store_fails(Code::in_doubt);
  script.on(RetryDue{});
  script.store_says(ReserveOutcome(Unknown{StoreTime{}, std::nullopt}));
  script.store_says(OwnerReply{Verdict::stale, State::unknown, {}});
  ASSERT_NE(script.asked<Find>(), nullptr);
  Record record;
  record.state = State::unknown;
  script.store_says(std::optional<Record>(record));
  EXPECT_EQ(script.status(), 409);
  EXPECT_TRUE(script.body_has("outcome_unknown"));
}

TEST(ExchangeDoubt, T16_a_failed_settling_write_is_repeated_and_answered_when_durable) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_fails(Code::unavailable);
  ASSERT_NE(script.as<AskLater>(), nullptr);
  const Millis first = script.as<AskLater>()->delay;
  script.on(RetryDue{});
  ASSERT_NE(script.asked<Complete>(), nullptr);
  script.store_fails(Code::in_doubt);
  ASSERT_NE(script.as<AskLater>(), nullptr);
  EXPECT_GT(script.as<AskLater>()->delay, first);
  script.on(RetryDue{});
  script.store_says(script.done(State::completed, StoreTime{}));
  EXPECT_EQ(script.status(), 201);
}

// The names of a route's fields go with the settings of a reload; the duty to settle does not.
TEST(ExchangeDoubt, T16_the_repeated_write_is_the_first_one_whatever_became_of_the_settings) {
  auto kept = std::make_unique<std::vector<std::string>>(1, "Set-Cookie");
  Exchange exchange(
      {.dispatch_timeout = dispatch_timeout, .renew_interval = lease / 3, .replay_fields = *kept},
      some_reserve());
  const MonotonicTime now{};
  exchange.start(now);
  ReserveOutcome granted = Execute{some_reserve().id, ExchangeScript::attempt(), ""};
  exchange.on(StoreAnswered{std::move(granted)}, now);
  exchange.on(UpstreamReady{}, now);
  const auto asked = [](const ExchangeAction& action) {
    return std::get<Complete>(std::get<Ask>(action).call);
  };
  const Complete first = asked(exchange.on(
      ExchangeScript::answered(201, {{"Set-Cookie", "s=1"}, {"WWW-Authenticate", "x"}}), now));
  ASSERT_EQ(first.response.headers, (std::vector<Field>{{"Set-Cookie", "s=1"}}));
  ASSERT_EQ(first.response.body, "body");
  const StoreError lost{StoreError::Code::in_doubt, "x"};
  exchange.on(StoreAnswered{std::unexpected(lost)}, now);
  exchange.on(ClientDeadline{}, now);
  kept->front() = "Other";
  kept.reset();
  const Complete again = asked(exchange.on(RetryDue{}, now));
  EXPECT_EQ(again.response, first.response);
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(again.attempt, first.attempt);
}

TEST(ExchangeDoubt, T16_at_the_clients_deadline_it_gets_504_and_the_duty_goes_on) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_fails(Code::unavailable);
  script.on(ClientDeadline{});
  EXPECT_EQ(script.status(), 504);
  EXPECT_TRUE(script.body_has("outcome_unknown"));
  ASSERT_TRUE(script.exchange().owes_settlement());
  script.on(RetryDue{});
  ASSERT_NE(script.asked<Complete>(), nullptr);
  EXPECT_EQ(script.asked<Complete>()->response.status, 201);
  script.store_says(script.done(State::completed, StoreTime{}));
  EXPECT_NE(script.as<Done>(), nullptr);
}

TEST(ExchangeDoubt, S04_our_own_completion_whose_reply_was_lost_gives_the_whole_answer) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201, {{"Set-Cookie", "s=1"}}));
  const StoredResponse stored = script.asked<Complete>()->response;
  script.store_fails(Code::in_doubt);
  script.on(RetryDue{});
  script.store_says(OwnerReply{Verdict::settled, State::completed, StoreTime{}});
  ASSERT_NE(script.asked<Find>(), nullptr);
  script.store_says(std::optional(completed_record(script.attempt(), stored)));
  EXPECT_EQ(script.status(), 201);
  EXPECT_EQ(script.header("Set-Cookie"), "s=1");
  EXPECT_EQ(script.header("Idempotent-Replayed"), "");
}

TEST(ExchangeDoubt, S17_a_record_that_the_service_completed_itself_is_the_answer) {
  ExchangeScript script;
  script.until_sent();
  script.on(UpstreamLost{UpstreamLost::How::closed, {}});
  script.store_says(OwnerReply{Verdict::settled, State::completed, StoreTime{}});
  ASSERT_NE(script.asked<Find>(), nullptr);
  script.store_says(
      std::optional(completed_record(script.attempt(), {200, {}, "by the service", true})));
  EXPECT_EQ(script.status(), 200);
  EXPECT_TRUE(script.body_has("by the service"));
  EXPECT_EQ(script.header("Idempotency-Outcome"), "stored");
  EXPECT_EQ(script.header("Idempotent-Replayed"), "") << "it is this request that ran";
}

TEST(ExchangeDoubt, T08_a_stale_owner_answers_from_the_record_of_the_successor) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_says(OwnerReply{Verdict::stale, State::completed, StoreTime{}});
  Attempt successor{42, {}};
  script.store_says(std::optional(completed_record(successor, {200, {}, "successor", true})));
  EXPECT_EQ(script.status(), 200);
  EXPECT_TRUE(script.body_has("successor"));
  EXPECT_EQ(script.header("Idempotent-Replayed"), "true");
}

TEST(ExchangeDoubt, T03_a_stale_owner_whose_record_is_gone_claims_nothing) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_says(OwnerReply{Verdict::stale, std::nullopt, {}});
  script.store_says(std::optional<Record>());
  EXPECT_EQ(script.status(), 504);
  EXPECT_TRUE(script.body_has("outcome_unknown"));
}

TEST(ExchangeDoubt, T30_a_row_that_the_store_refuses_ends_in_504_not_in_a_loop) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_fails(Code::refused);
  EXPECT_EQ(script.status(), 504);
  EXPECT_FALSE(script.exchange().owes_settlement());
}

TEST(ExchangeDoubt, S05_a_request_that_the_store_cannot_hold_is_not_asked_for_again) {
  ExchangeScript script;
  script.store_fails(Code::unstorable);
  EXPECT_EQ(script.status(), 500);
  EXPECT_TRUE(script.body_has("request_not_storable"));
  EXPECT_TRUE(script.body_has("\"retry\":\"never\""));
  EXPECT_EQ(script.header("Retry-After"), "");
  EXPECT_FALSE(script.exchange().owes_settlement());
}

TEST(ExchangeDoubt, S04_a_reservation_that_may_be_there_is_released_before_the_store_is_believed) {
  ExchangeScript script;
  script.store_fails(Code::in_doubt);
  script.on(RetryDue{});
  script.store_fails(Code::unstorable);
  EXPECT_TRUE(script.body_has("store_unavailable"));
  EXPECT_TRUE(script.exchange().owes_settlement());
}

TEST(ExchangeDoubt, T24_an_answer_that_the_store_cannot_hold_is_given_once_and_proves_the_run) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_fails(Code::unstorable);
  const auto* const again = script.as<Ask>();
  ASSERT_NE(again, nullptr);
  const auto* const complete = std::get_if<Complete>(&again->call);
  ASSERT_NE(complete, nullptr);
  EXPECT_FALSE(complete->response.body_stored);
  EXPECT_EQ(complete->response.body, "");
  EXPECT_EQ(complete->response.status, 201);
  script.store_says(OwnerReply{Verdict::done, State::completed, StoreTime{}});
  EXPECT_EQ(script.status(), 201);
  EXPECT_EQ(script.header("Idempotency-Outcome"), "stored");
  EXPECT_FALSE(script.exchange().owes_settlement());
}

TEST(ExchangeDoubt, T30_an_ending_that_the_store_cannot_hold_in_any_form_ends_in_504) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_fails(Code::unstorable);
  script.store_fails(Code::unstorable);
  EXPECT_EQ(script.status(), 504);
  EXPECT_TRUE(script.body_has("outcome_unknown"));
  EXPECT_FALSE(script.exchange().owes_settlement());
}

// It may have run; so it never runs again, and no client is answered that it did not.
TEST(ExchangeDoubt, S22_a_damaged_record_is_reported_as_such_at_the_reserve) {
  ExchangeScript script;
  script.store_fails(Code::in_doubt);
  script.on(RetryDue{});
  script.store_fails(Code::damaged);
  EXPECT_EQ(script.status(), 503);
  EXPECT_TRUE(script.body_has("record_damaged"));
  EXPECT_TRUE(script.body_has("\"retry\":\"never\""));
  EXPECT_EQ(script.header("Retry-After"), "");
  EXPECT_FALSE(script.exchange().owes_settlement()) << "nothing can be taken back there";
}

TEST(ExchangeDoubt, S22_a_record_that_was_damaged_meanwhile_ends_in_504_not_in_a_loop) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_fails(Code::damaged);
  EXPECT_EQ(script.status(), 504);
  EXPECT_TRUE(script.body_has("outcome_unknown"));
  EXPECT_FALSE(script.exchange().owes_settlement());
}

TEST(ExchangeDoubt, S04_reading_the_record_is_repeated_too) {
  ExchangeScript script;
  script.until_sent();
  script.on(script.answered(201));
  script.store_says(OwnerReply{Verdict::stale, State::completed, StoreTime{}});
  script.store_fails(Code::unavailable);
  ASSERT_NE(script.as<AskLater>(), nullptr);
  script.on(RetryDue{});
  EXPECT_NE(script.asked<Find>(), nullptr);
}

}  // namespace
}  // namespace idem::test
