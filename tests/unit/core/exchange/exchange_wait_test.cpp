#include "exchange_driver.hpp"

/// protocol.md §7: a duplicate that waits for the attempt it met, in every order of what can happen
/// meanwhile.
namespace idem::test {
namespace {

using namespace std::chrono_literals;

constexpr Millis wait_time{20'000};
constexpr Fence met_fence = 41;
constexpr StoreTime store_then{1'800'000'000s};  // The store's clock when the attempt was met.

InProgress running(Millis lease_remaining = 45s) {
  return {lease_remaining, some_reserve().id, met_fence, store_then + lease_remaining};
}

Record record_in(State state, Fence fence = met_fence) {
  Record record;
  record.id = some_reserve().id;
  record.state = state;
  record.attempt = Attempt{fence, {}};
  record.locked_until = store_then + 45s;
  if (state == State::completed) {
    record.response = StoredResponse{201, {{"Location", "/p/1"}}, "it ran", true};
    record.completed_at = store_then;
    record.expires_at = store_then + 24h;
  }
  return record;
}

Woken woken(std::optional<Record> record) {
  Woken event;
  if (record) event.record = std::make_shared<const Record>(std::move(*record));
  return event;
}
Woken woken(State state, Fence fence = met_fence) { return woken(record_in(state, fence)); }

/// A duplicate that has met the attempt.
class WaitScript : public ExchangeScript {
 public:
  explicit WaitScript(Millis wait = wait_time,
                      std::optional<std::chrono::seconds> wait_applied = {})
      : ExchangeScript(true, wait, wait_applied) {
    store_says(ReserveOutcome(running()));
  }
  bool waits() const { return as<WaitFor>() != nullptr; }
  /// The bytes that the client is given now.
  std::string_view bytes() const {
    const auto* answer = as<AnswerClient>();
    return answer == nullptr ? std::string_view{} : answer->answer.body_bytes();
  }
};

TEST(ExchangeWait, S07_waits_for_the_one_attempt_that_it_met_until_its_time_is_over) {
  const WaitScript script;
  ASSERT_TRUE(script.waits());
  EXPECT_EQ(script.as<WaitFor>()->id, some_reserve().id);
  EXPECT_EQ(script.as<WaitFor>()->fence, met_fence);
  EXPECT_EQ(script.as<WaitFor>()->until, script.now() + wait_time);
}

TEST(ExchangeWait, S07_the_time_counts_from_before_the_reserve_was_asked) {
  ExchangeScript script(true, wait_time);
  script.advance(5s);
  script.store_says(ReserveOutcome(running()));
  ASSERT_NE(script.as<WaitFor>(), nullptr);
  EXPECT_EQ(script.as<WaitFor>()->until, script.now() + wait_time - 5s);
}

TEST(ExchangeWait, S07_without_time_to_wait_it_is_answered_at_once) {
  const WaitScript script(Millis{0});
  EXPECT_EQ(script.status(), 409);
  EXPECT_TRUE(script.body_has("\"code\":\"in_progress\""));
  EXPECT_EQ(script.header("Retry-After"), "45");
}

TEST(ExchangeWait, S07_the_record_may_lie_under_an_older_name) {
  ExchangeScript script(true, wait_time);
  InProgress elsewhere = running();
  elsewhere.id.bytes[0] = 99;
  script.store_says(ReserveOutcome(elsewhere));
  ASSERT_NE(script.as<WaitFor>(), nullptr);
  EXPECT_EQ(script.as<WaitFor>()->id, elsewhere.id);
}

TEST(ExchangeWait, S07_completion_replays_the_stored_bytes_without_copying_them) {
  WaitScript script;
  const auto news = woken(State::completed);
  script.on(news);
  EXPECT_EQ(script.status(), 201);
  EXPECT_EQ(script.bytes(), "it ran");
  EXPECT_EQ(script.bytes().data(), (*news.record)->response->body.data());
  EXPECT_EQ(script.header("Location"), "/p/1");
  EXPECT_EQ(script.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(script.header("Idempotency-Outcome"), "stored");
  EXPECT_NE(script.header("Idempotency-Expires"), "");
}

TEST(ExchangeWait, S12_completion_without_a_kept_body_is_reported) {
  WaitScript script;
  Record record = record_in(State::completed);
  record.response->body_stored = false;
  script.on(woken(record));
  EXPECT_EQ(script.status(), 409);
  EXPECT_TRUE(script.body_has("response_not_stored"));
  EXPECT_EQ(script.header("Location"), "/p/1");
}

TEST(ExchangeWait, S07_a_released_attempt_gives_503_and_never_a_run_of_its_own) {
  WaitScript script;
  script.on(woken(State::failed_retryable));
  EXPECT_EQ(script.status(), 503);
  EXPECT_TRUE(script.body_has("\"code\":\"attempt_released\""));
  EXPECT_TRUE(script.body_has("\"retry\":\"same_key\""));
  EXPECT_NE(script.header("Retry-After"), "");
}

TEST(ExchangeWait, S07_a_successor_that_runs_already_is_not_waited_for) {
  WaitScript script;
  script.advance(10s);
  script.on(woken(State::in_progress, met_fence + 1));
  EXPECT_EQ(script.status(), 503);
  EXPECT_TRUE(script.body_has("attempt_released"));
  EXPECT_EQ(script.header("Retry-After"), "35") << "of the successor's lease";
}

// On a shared store a duplicate may meet a record that is only being made.
TEST(ExchangeWait, S07_an_attempt_that_is_not_committed_yet_is_waited_for_once_it_has_a_name) {
  ExchangeScript script(true, wait_time);
  InProgress nameless = running();
  nameless.fence.reset();
  script.store_says(ReserveOutcome(nameless));
  script.on(woken(std::nullopt));
  ASSERT_NE(script.as<WaitFor>(), nullptr) << "not committed yet";
  script.on(woken(State::in_progress, met_fence));
  ASSERT_NE(script.as<WaitFor>(), nullptr);
  script.on(woken(State::in_progress, met_fence + 1));
  EXPECT_EQ(script.status(), 503) << "its successor is nobody's to wait for";
}

TEST(ExchangeWait, S07_a_successors_end_is_answered_by_its_state) {
  for (const auto& [state, status] :
       {std::pair{State::completed, 201}, {State::unknown, 409}, {State::failed_retryable, 503}}) {
    WaitScript script;
    script.on(woken(state, met_fence + 7));
    EXPECT_EQ(script.status(), status) << name_of(state);
  }
}

TEST(ExchangeWait, S07_an_older_attempts_end_wakes_no_waiter) {
  for (const auto state :
       {State::failed_retryable, State::completed, State::unknown, State::in_progress}) {
    WaitScript script;
    script.on(woken(state, met_fence - 1));
    EXPECT_TRUE(script.waits()) << name_of(state);
  }
}

TEST(ExchangeWait, S07_unknown_is_answered_at_once_with_the_next_reconciliation_if_there_is_one) {
  WaitScript script;
  script.on(woken(State::unknown));
  EXPECT_EQ(script.status(), 409);
  EXPECT_TRUE(script.body_has("outcome_unknown"));
  EXPECT_EQ(script.header("Retry-After"), "");

  WaitScript scheduled;
  scheduled.advance(3s);
  Record record = record_in(State::unknown);
  record.reconcile_after = store_then + 12s;
  scheduled.on(woken(record));
  EXPECT_EQ(scheduled.header("Retry-After"), "9");
  EXPECT_TRUE(scheduled.body_has("\"retry\":\"later\""));
}

TEST(ExchangeWait, S07_pending_is_waited_for_and_expired_is_answered_as_expired) {
  WaitScript pending;
  pending.on(woken(State::pending));
  EXPECT_TRUE(pending.waits()) << "a stored request goes on by itself";
  pending.on(WaitOver{});
  EXPECT_EQ(pending.status(), 202);
  WaitScript expired;
  expired.on(woken(State::expired));
  EXPECT_EQ(expired.status(), 410);
}

TEST(ExchangeWait, S07_a_record_that_is_gone_ends_the_waiting) {
  WaitScript script;
  script.on(woken(std::nullopt));
  EXPECT_EQ(script.status(), 503);
  EXPECT_TRUE(script.body_has("attempt_released"));
  EXPECT_FALSE(script.body_has("\"state\""));
}

TEST(ExchangeWait, S07_a_failed_read_fails_closed) {
  for (const auto code :
       {StoreError::Code::unavailable, StoreError::Code::in_doubt, StoreError::Code::refused}) {
    WaitScript script;
    script.on(Woken{std::unexpected(StoreError{code, "x"})});
    EXPECT_EQ(script.status(), 503);
    EXPECT_TRUE(script.body_has("store_unavailable"));
    EXPECT_NE(script.header("Retry-After"), "");
  }
}

TEST(ExchangeWait, S07_woken_while_it_still_runs_it_goes_on_waiting_for_the_same_one) {
  WaitScript script;
  const auto until = script.as<WaitFor>()->until;
  script.advance(1s);
  script.on(woken(State::in_progress));
  ASSERT_TRUE(script.waits());
  EXPECT_EQ(script.as<WaitFor>()->until, until);
  script.advance(1s);
  script.on(woken(State::completed));
  EXPECT_EQ(script.status(), 201);
}

TEST(ExchangeWait, V10_at_the_deadline_409_carries_the_rest_of_the_lease) {
  WaitScript script;
  script.advance(wait_time);
  script.on(WaitOver{});
  EXPECT_EQ(script.status(), 409);
  EXPECT_TRUE(script.body_has("in_progress"));
  EXPECT_EQ(script.header("Retry-After"), "25");
}

TEST(ExchangeWait, V10_a_lease_that_was_renewed_meanwhile_counts_as_renewed) {
  WaitScript script;
  script.advance(10s);
  Record record = record_in(State::in_progress);
  record.locked_until = store_then + 10s + 60s;
  script.on(woken(record));
  script.advance(10s);
  script.on(WaitOver{});
  EXPECT_EQ(script.header("Retry-After"), "50");
}

TEST(ExchangeWait, V10_a_lease_that_is_over_still_asks_for_a_second) {
  WaitScript script(Millis{50'000});
  script.advance(50s);
  script.on(WaitOver{});
  EXPECT_EQ(script.status(), 409);
  EXPECT_EQ(script.header("Retry-After"), "1");
}

TEST(ExchangeWait, S07_deadline_and_wake_up_at_once_give_the_records_answer) {
  WaitScript completed;
  completed.advance(wait_time);
  completed.on(woken(State::completed));
  EXPECT_EQ(completed.status(), 201);
  WaitScript still_running;
  still_running.advance(wait_time);
  still_running.on(woken(State::in_progress));
  EXPECT_EQ(still_running.status(), 409) << "there is no time left to wait again";
}

TEST(ExchangeWait, S07_only_a_client_that_met_a_running_attempt_gets_preference_applied) {
  WaitScript waited(5s, 5s);
  waited.on(woken(State::completed));
  EXPECT_EQ(waited.header("Preference-Applied"), "wait=5");
  WaitScript refused(Millis{0}, 0s);
  EXPECT_EQ(refused.status(), 409);
  EXPECT_EQ(refused.header("Preference-Applied"), "wait=0");
  ExchangeScript first(true, 5s, 5s);
  first.until_sent();
  first.on(first.answered(201));
  first.store_says(first.done(State::completed, StoreTime{}));
  EXPECT_EQ(first.status(), 201);
  EXPECT_EQ(first.header("Preference-Applied"), "");
}

TEST(ExchangeWait, S07_the_upstreams_preference_fields_are_not_sent_twice) {
  WaitScript script(5s, 5s);
  Record record = record_in(State::completed);
  record.response->headers.push_back({"preference-applied", "return=minimal"});
  script.on(woken(record));
  EXPECT_EQ(script.header("Preference-Applied"), "return=minimal");
}

TEST(ExchangeWait, S07_a_duplicate_that_meets_anything_else_does_not_wait) {
  const auto answer_to = [](ReserveOutcome outcome) {
    ExchangeScript script(true, wait_time);
    script.store_says(std::move(outcome));
    return script.status();
  };
  EXPECT_EQ(answer_to(Unknown{StoreTime{}, std::nullopt}), 409);
  EXPECT_EQ(answer_to(Expired{StoreTime{}}), 410);
  EXPECT_EQ(answer_to(KeyMisuse{State::in_progress}), 422);
  EXPECT_EQ(answer_to(Replay{{201, {}, "x", true}, {}, {}}), 201);
}

}  // namespace
}  // namespace idem::test
