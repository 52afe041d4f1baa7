#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <deque>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/bulk.hpp"

/// Duplicates that wait (protocol.md §7).
namespace idem::test {
namespace {

class Waiting : public Live {
 protected:
  std::vector<std::string> flags() const override {
    // Longer than any test has patience: who is not woken fails.
    return {"--mode",    "wait", "--wait-max",  "5m",
            "--threads", "1",    "--spill-dir", dir_.path().string()};
  }

  /// Sends the first request of a key and comes back once the provider holds it.
  Connection begin(std::string_view key, std::string_view faults) {
    Connection first(gateway_->address());
    first.send(charge(key, faults));
    EXPECT_TRUE(provider_->wait_held("h", 1));
    return first;
  }
  /// Sends so many duplicates, and comes back once they wait. The first ones: nothing waits yet.
  std::deque<Connection> park(std::string_view key, int count) {
    std::deque<Connection> waiters;
    for (int i = 0; i < count; ++i) {
      waiters.emplace_back(gateway_->address());
      EXPECT_TRUE(waiters.back().send(charge(key)));
    }
    until_waiting(count);
    return waiters;
  }
  void until_waiting(int count) { test::until_waiting(gateway_->admin(), count); }
  /// On one loop: what was sent before has been met, because this one has.
  void still_runs(std::string_view key) {
    EXPECT_TRUE(is_problem(ask(with(charge(key), "Prefer", "wait=0")), 409, "in_progress"));
  }
  static int retry_after(const Response& answer) {
    return std::atoi(answer.get("Retry-After").value_or("0").c_str());
  }
};

TEST_F(Waiting, S07_V12_completion_wakes_them_with_the_stored_answer) {
  auto first = begin("k", "hold=h");
  auto waiters = park("k", 10);
  for (auto& waiter : waiters) EXPECT_FALSE(waiter.socket().readable_within(0));
  provider_->release("h");
  const auto answer = first.read_response();
  EXPECT_EQ(answer.status, 201);
  for (auto& waiter : waiters) {
    const auto replay = waiter.read_response();
    EXPECT_TRUE(replays(answer, replay));
    EXPECT_FALSE(replay.get("Preference-Applied"));
    EXPECT_EQ(waiter.exchange(charge("other")).status, 201) << "the connection lives on";
  }
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
}

TEST_F(Waiting, S07_waiters_do_not_follow_a_released_attempt) {
  auto first = begin("k", "hold=h,status=429");
  auto waiters = park("k", 5);
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 429);
  for (auto& waiter : waiters) {
    const auto answer = waiter.read_response();
    EXPECT_TRUE(is_problem(answer, 503, "attempt_released"));
    EXPECT_EQ(json_text(answer.body, "retry"), "same_key");
    EXPECT_GE(retry_after(answer), 1);
  }
  EXPECT_EQ(provider_->of_key("k").arrivals, 1) << "nobody became the successor by waiting";
  EXPECT_EQ(ask(charge("k")).status, 201) << "a new request runs";
}

TEST_F(Waiting, S07_T21_an_attempt_that_turns_unknown_is_answered_at_once) {
  auto first = begin("k", "hold=h,drop-after");
  auto waiters = park("k", 5);
  provider_->release("h");
  EXPECT_TRUE(is_problem(first.read_response(), 502, "outcome_unknown"));
  for (auto& waiter : waiters) {
    const auto answer = waiter.read_response();
    EXPECT_TRUE(is_problem(answer, 409, "outcome_unknown"));
    EXPECT_EQ(json_text(answer.body, "state"), "unknown");
  }
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Waiting, S07_an_answer_too_large_to_keep_is_reported_to_them_too) {
  auto first = begin("k", "hold=h,size=2000000");
  auto waiters = park("k", 3);
  provider_->release("h");
  EXPECT_EQ(first.read_response().body.size(), 2'000'000U);
  for (auto& waiter : waiters) {
    EXPECT_TRUE(is_problem(waiter.read_response(), 409, "response_not_stored"));
  }
}

TEST_F(Waiting, S07_a_large_stored_answer_reaches_all_of_them_whole) {
  auto first = begin("k", "hold=h,size=1000000");
  auto waiters = park("k", 20);
  provider_->release("h");
  const auto answer = first.read_response();
  for (auto& waiter : waiters) EXPECT_TRUE(replays(answer, waiter.read_response()));
}

TEST_F(Waiting, T04_misuse_is_answered_at_once) {
  auto first = begin("k", "hold=h");
  EXPECT_TRUE(is_problem(ask(charge("k", "", "{\"amount\":1}")), 422, "key_reused"));
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);
}

TEST_F(Waiting, S07_only_those_of_the_same_key_are_woken) {
  auto first = begin("k", "hold=h");
  auto waiters = park("k", 2);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(charge(fmt::format("other-{}", i))).status, 201);
  for (auto& waiter : waiters) EXPECT_FALSE(waiter.socket().readable_within(0));
  provider_->release("h");
  const auto answer = first.read_response();
  for (auto& waiter : waiters) EXPECT_TRUE(replays(answer, waiter.read_response()));
}

TEST_F(Waiting, P27_a_waiting_clients_next_request_is_served_afterwards) {
  auto first = begin("k", "hold=h");
  auto waiters = park("k", 1);
  auto& waiter = waiters.front();
  // More than is kept for it, in pieces that end in the middle of a request.
  std::string more;
  for (int i = 0; i < 20; ++i) {
    more += to_wire(charge(fmt::format("next-{}", i), "", std::string(4'000, 'x')));
  }
  ASSERT_TRUE(waiter.send_raw(std::string_view(more).substr(0, 5'000)));
  still_runs("k");
  ASSERT_TRUE(waiter.send_raw(std::string_view(more).substr(5'000)));
  still_runs("k");
  provider_->release("h");
  EXPECT_TRUE(replays(first.read_response(), waiter.read_response()));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(waiter.read_response().status, 201) << i;
}

TEST_F(Waiting, S07_a_client_that_sends_no_more_is_not_kept_waiting) {
  auto first = begin("k", "hold=h");
  auto waiters = park("k", 2);
  waiters[0].socket().half_close();
  EXPECT_TRUE(is_problem(waiters[0].read_response(), 409, "in_progress"));
  waiters[1].socket().reset();
  until_waiting(0);
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);
}

// The body's only use was its fingerprint; thousands of them would fill the disk.
TEST_F(Waiting, S07_their_bodies_are_not_kept) {
  const auto kept = [this] {
    return unlinked_files(gateway_->process().pid(), dir_.path().string());
  };
  const auto large = charge("k", "", std::string(200'000, 'x'));
  Connection first(gateway_->address());
  first.send(with(large, "X-Fault", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const int of_the_first = kept();
  EXPECT_GE(of_the_first, 1);
  std::deque<Connection> waiters;
  for (int i = 0; i < 5; ++i) {
    waiters.emplace_back(gateway_->address());
    waiters.back().send(large);
  }
  until_waiting(5);
  // Threads close the files, soon after.
  const auto end = std::chrono::steady_clock::now() + patience;
  while (kept() != of_the_first && std::chrono::steady_clock::now() < end) back_off();
  EXPECT_EQ(kept(), of_the_first);
  provider_->release("h");
  const auto answer = first.read_response();
  for (auto& waiter : waiters) EXPECT_TRUE(replays(answer, waiter.read_response()));
}

TEST_F(Waiting, P22_drain_does_not_wait_for_them) {
  auto first = begin("k", "hold=h");
  auto waiters = park("k", 5);
  gateway_->process().signal(SIGTERM);
  for (auto& waiter : waiters) {
    const auto answer = waiter.read_response();
    EXPECT_TRUE(is_problem(answer, 409, "in_progress"));
    EXPECT_GE(retry_after(answer), 1);
    EXPECT_EQ(answer.get("Connection"), "close");
  }
  waiters.clear();
  provider_->release("h");
  const auto answer = first.read_response();
  EXPECT_EQ(answer.status, 201);
  first.socket().close();
  EXPECT_EQ(gateway_->process().exit_code(), 0);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_TRUE(replays(answer, ask(charge("k"))));
}

class WaitingBriefly : public Waiting {
 protected:
  std::vector<std::string> flags() const override {
    return {"--mode", "wait", "--wait-max", "300ms", "--threads", "1"};
  }
};

TEST_F(WaitingBriefly, V10_at_the_deadline_it_gets_the_rest_of_the_lease) {
  auto first = begin("k", "hold=h");
  const auto answer = ask(charge("k"));
  EXPECT_TRUE(is_problem(answer, 409, "in_progress"));
  EXPECT_GE(retry_after(answer), 1);
  // Where the store's clock is known by whole seconds, a lease may last two of them longer.
  EXPECT_LE(retry_after(answer), live_store_kind() == "dynamodb" ? 62 : 60);
  const auto capped = ask(with(charge("k"), "Prefer", "wait=3600"));
  EXPECT_TRUE(is_problem(capped, 409, "in_progress")) << "no preference waits longer than allowed";
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);
}

class WaitingByPreference : public Waiting {
 protected:
  std::vector<std::string> flags() const override { return {"--wait-max", "5m", "--threads", "1"}; }
};

TEST_F(WaitingByPreference, S07_prefer_wait_is_honoured_in_mode_conflict) {
  auto first = begin("k", "hold=h");
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "in_progress"));
  std::deque<Connection> waiters;
  for (const auto* prefer : {"wait=200", "respond-async, wait=200", "WAIT=\"200\";x"}) {
    waiters.emplace_back(gateway_->address());
    waiters.back().send(with(charge("k"), "Prefer", prefer));
  }
  waiters.emplace_back(gateway_->address());
  waiters.back().send(with(with(charge("k"), "Prefer", "handling=lenient"), "prefer", "wait=200"));
  until_waiting(4);
  provider_->release("h");
  const auto answer = first.read_response();
  for (auto& waiter : waiters) {
    auto replay = waiter.read_response();
    EXPECT_EQ(replay.get("Preference-Applied"), "wait=200");
    std::erase_if(replay.fields, [](const auto& f) { return f.name == "Preference-Applied"; });
    EXPECT_TRUE(replays(answer, replay));
  }
}

TEST_F(WaitingByPreference, S07_its_time_is_over_after_the_clients_preference) {
  auto first = begin("k", "hold=h");
  const auto answer = ask(with(charge("k"), "Prefer", "wait=1"));
  EXPECT_TRUE(is_problem(answer, 409, "in_progress"));
  EXPECT_EQ(answer.get("Preference-Applied"), "wait=1");
  const auto bad = ask(with(charge("k"), "Prefer", "wait=soon, wait=200"));
  EXPECT_TRUE(is_problem(bad, 409, "in_progress"));
  EXPECT_FALSE(bad.get("Preference-Applied"));
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);
}

class FewPlaces : public Waiting {
 protected:
  std::vector<std::string> flags() const override {
    return {"--mode", "wait", "--wait-max", "5m", "--threads", "1", "--connections", "16"};
  }
};

// Half of the connections may wait, and a scope that is alone may have half of these places.
TEST_F(FewPlaces, V12_a_scope_may_wait_on_a_quarter_and_a_place_is_free_once_its_client_hangs_up) {
  auto first = begin("k", "hold=h");
  auto waiters = park("k", 4);
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "in_progress")) << "no place is left";
  EXPECT_EQ(ask(charge("another")).status, 201) << "others must not suffer";
  waiters.pop_front();
  until_waiting(3);
  Connection late(gateway_->address());
  late.send(charge("k"));
  until_waiting(4);
  provider_->release("h");
  const auto answer = first.read_response();
  EXPECT_TRUE(replays(answer, late.read_response()));
  for (auto& waiter : waiters) EXPECT_TRUE(replays(answer, waiter.read_response()));
}

class WaitingForTheDead : public Waiting {
 protected:
  std::vector<std::string> flags() const override {
    return {"--mode",  "wait", "--wait-max",         "5m", "--threads", "1",
            "--lease", "3s",   "--upstream-timeout", "2s"};
  }
};

// A waiter is nothing durable; and a lease that runs out is an event for those who wait, too.
TEST_F(WaitingForTheDead, V19_S07_killed_with_waiters_the_attempt_is_unknown_to_later_requests) {
  auto first = begin("k", "hold=h");
  auto waiters = park("k", 20);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
  EXPECT_EQ(effects("k"), 1);
  for (auto& waiter : waiters) EXPECT_EQ(waiter.read_response().status, 0);
}

TEST(WaitFlags, settings_that_cannot_be_served_are_refused) {
  IDEM_NEED_PROGRAM("idem");
  const std::vector<std::string> cases[] = {{"--async-keep-header", "Authorization"},
                                            {"--wait-max", "6m"},
                                            {"--mode", "wait", "--wait-max", "0s"}};
  for (const auto& flags : cases) {
    const TempDir dir;
    Gateway gateway({.upstream = "127.0.0.1:9", .store = dir.path() / "idem.db", .flags = flags});
    EXPECT_EQ(gateway.process().exit_code(), 2) << flags.front();
  }
}

}  // namespace
}  // namespace idem::test
