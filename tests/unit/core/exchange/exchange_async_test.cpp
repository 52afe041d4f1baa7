#include "exchange_driver.hpp"

#include <idem/worker_limits.hpp>

/// protocol.md §3, §7: storing a request instead of sending it, and sending one that was stored.
namespace idem::test {
namespace {

using namespace std::chrono_literals;
using Code = StoreError::Code;

ExchangeSettings settings(Millis wait = {}) {
  return {.dispatch_timeout = dispatch_timeout,
          .renew_interval = lease / 3,
          .wait = wait,
          .respond_async = true,
          .look_again = 1500ms,
          .rest = 4s};
}

class Accepting : public ExchangeScript {
 public:
  explicit Accepting(Millis wait = {})
      : ExchangeScript(Exchange(settings(wait), Accept{some_reserve(), "request"})) {}
};

Claimed some_claimed() {
  Claimed claimed;
  claimed.id = some_reserve().id;
  claimed.attempt = ExchangeScript::attempt();
  return claimed;
}

class Claiming : public ExchangeScript {
 public:
  Claiming() : ExchangeScript(Exchange(settings(), some_claimed(), lease)) {}
  void marked() { store_says(done(State::in_progress)); }
};

Woken woken_with(State state, Fence fence = 41) {
  auto record = std::make_shared<Record>();
  record->id = some_reserve().id;
  record->state = state;
  record->attempt = Attempt{fence, {}};
  record->stored_request = "request";
  if (state == State::completed) {
    record->response = StoredResponse{201, {}, "it ran", true};
    record->completed_at = record->expires_at = StoreTime{1s};
  }
  return {std::shared_ptr<const Record>(std::move(record))};
}

TEST(ExchangeAsync, S03_a_stored_request_is_accepted_and_never_run_by_its_asker) {
  Accepting script;
  ASSERT_NE(script.asked<Accept>(), nullptr);
  EXPECT_EQ(script.asked<Accept>()->request, "request");
  script.store_says(ReserveOutcome(Pending{some_reserve().id}));
  EXPECT_EQ(script.status(), 202);
  EXPECT_EQ(script.header("Location"), "/.idem/operations/" + to_hex(some_reserve().id.bytes));
  EXPECT_EQ(script.header("Retry-After"), "2");
  EXPECT_FALSE(script.owes());
}

TEST(ExchangeAsync, S04_an_accept_in_doubt_is_repeated_and_never_released) {
  Accepting script;
  script.store_fails(Code::in_doubt);
  ASSERT_NE(script.as<AskLater>(), nullptr);
  script.on(RetryDue{});
  ASSERT_NE(script.asked<Accept>(), nullptr);
  EXPECT_EQ(script.asked<Accept>()->request, "request") << "all of it, once more";
  script.store_fails(Code::unavailable);
  EXPECT_EQ(script.status(), 503);
  EXPECT_TRUE(script.body_has("same key"));
  EXPECT_FALSE(script.body_has("nothing was run")) << "it may run";
  EXPECT_FALSE(script.owes());
}

TEST(ExchangeAsync, S04_an_accept_in_doubt_that_meets_unknown_releases_nothing) {
  Accepting script;
  script.store_fails(Code::in_doubt);
  script.on(RetryDue{});
  script.store_says(ReserveOutcome(Unknown{{}, {}, some_reserve().id}));
  EXPECT_EQ(script.status(), 409);
}

TEST(ExchangeAsync, S07_the_column_async) {
  const auto status_of = [](ReserveOutcome outcome) {
    Accepting script;
    script.store_says(std::move(outcome));
    return script.status();
  };
  const auto id = some_reserve().id;
  EXPECT_EQ(status_of(Pending{id}), 202);
  EXPECT_EQ(status_of(InProgress{45s, id, 7, StoreTime{45s}, true}), 202);
  EXPECT_EQ(status_of(InProgress{45s, id, 7, StoreTime{45s}, false}), 409)
      << "nobody goes on with that one once its attempt is over";
  EXPECT_EQ(status_of(InProgress{1ms, id, 7, StoreTime{1ms}, false}), 409) << "nobody has that one";
  EXPECT_EQ(status_of(Unknown{{}, {}, id}), 409);
  EXPECT_EQ(status_of(KeyMisuse{State::pending, true, id}), 422);
  EXPECT_EQ(status_of(Expired{{}, id}), 410);
  EXPECT_EQ(status_of(Replay{{201, {}, "x", true}, {}, {}, id}), 201);
}

TEST(ExchangeAsync, S07_a_waiter_for_a_stored_request_waits_for_its_end_over_all_attempts) {
  Accepting script(20s);
  script.store_says(ReserveOutcome(Pending{some_reserve().id}));
  ASSERT_NE(script.as<WaitFor>(), nullptr);
  for (const auto& [state, fence] : {std::pair{State::pending, Fence{0}},
                                     {State::in_progress, 41},
                                     {State::pending, 41},
                                     {State::in_progress, 42}}) {
    script.on(woken_with(state, fence));
    ASSERT_NE(script.as<WaitFor>(), nullptr) << name_of(state);
  }
  script.on(woken_with(State::completed, 42));
  EXPECT_EQ(script.status(), 201);
  EXPECT_EQ(script.header("Idempotent-Replayed"), "true");
}

TEST(ExchangeAsync, S07_at_the_deadline_of_a_wait_it_is_202_in_whatever_mode) {
  Accepting script(20s);
  script.store_says(ReserveOutcome(Pending{some_reserve().id}));
  script.on(WaitOver{});
  EXPECT_EQ(script.status(), 202);

  ExchangeScript waiting(true, 20s, 20s);  // Mode wait.
  waiting.store_says(ReserveOutcome(Pending{some_reserve().id}));
  ASSERT_NE(waiting.as<WaitFor>(), nullptr);
  waiting.on(WaitOver{});
  EXPECT_EQ(waiting.status(), 202);
  EXPECT_EQ(waiting.header("Preference-Applied"), "wait=20");
}

TEST(ExchangeAsync, S03_a_claimed_request_is_marked_before_anything_is_sent) {
  Claiming script;
  ASSERT_NE(script.asked<Dispatched>(), nullptr);
  EXPECT_EQ(script.asked<Dispatched>()->attempt, ExchangeScript::attempt());
  script.marked();
  ASSERT_NE(script.as<Connect>(), nullptr);
  script.on(UpstreamReady{});
  ASSERT_NE(script.as<Send>(), nullptr);
  EXPECT_EQ(script.as<Send>()->attempt, ExchangeScript::attempt());
  script.on(ExchangeScript::answered(201));
  ASSERT_NE(script.asked<Complete>(), nullptr);
  script.store_says(ExchangeScript::done(State::completed, StoreTime{1s}));
  EXPECT_EQ(script.status(), 201);
  EXPECT_FALSE(script.owes());
}

TEST(ExchangeAsync, S06_its_lease_is_counted_from_before_the_claim) {
  Claiming script;
  script.marked();
  script.advance(lease - dispatch_timeout + 1ms);
  script.on(UpstreamReady{});
  ASSERT_NE(script.asked<Release>(), nullptr);
  EXPECT_EQ(script.asked<Release>()->basis, ReleaseBasis::proven);
}

TEST(ExchangeAsync, S03_it_rests_before_it_is_claimed_again) {
  Claiming unreachable;
  unreachable.marked();
  unreachable.on(UpstreamNotReached{"down"});
  ASSERT_NE(unreachable.asked<Release>(), nullptr);
  EXPECT_EQ(unreachable.asked<Release>()->retry_in, 4s);

  const auto rest_after = [](std::string retry_after) {
    Claiming script;
    script.marked();
    script.on(UpstreamReady{});
    script.on(ExchangeScript::answered(429, {{"Retry-After", std::move(retry_after)}}));
    return script.asked<Release>() == nullptr ? Millis(-1) : script.asked<Release>()->retry_in;
  };
  EXPECT_EQ(rest_after("30"), 30s) << "the upstream says when";
  EXPECT_EQ(rest_after("1"), 4s);
  EXPECT_EQ(rest_after("99999999999999999999"), Millis(limits::retry_after_max));
  EXPECT_EQ(rest_after("Sun, 06 Nov 1994 08:49:37 GMT"), 4s);
}

TEST(ExchangeAsync, S11_an_attempt_sent_and_lost_is_unknown_and_never_pending_again) {
  Claiming script;
  script.marked();
  script.on(UpstreamReady{});
  script.on(UpstreamLost{UpstreamLost::How::closed, {}});
  ASSERT_NE(script.asked<MarkUnknown>(), nullptr);
}

TEST(ExchangeAsync, S03_an_attempt_superseded_meanwhile_sends_nothing) {
  Claiming script;
  script.store_says(OwnerReply{Verdict::stale, State::in_progress, {}});
  EXPECT_NE(script.asked<Find>(), nullptr);
}

TEST(ExchangeAsync, S04_its_settling_is_repeated_for_as_long_as_it_takes) {
  Claiming script;
  script.marked();
  script.on(UpstreamReady{});
  script.on(ExchangeScript::answered(201));
  for (int i = 0; i < 100; ++i) {
    script.store_fails(i % 2 == 0 ? Code::unavailable : Code::in_doubt);
    ASSERT_NE(script.as<AskLater>(), nullptr);
    script.on(RetryDue{});
    ASSERT_NE(script.asked<Complete>(), nullptr);
    EXPECT_EQ(script.asked<Complete>()->response.body, "body");
  }
}

}  // namespace
}  // namespace idem::test
