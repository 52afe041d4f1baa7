#include "around_failing.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace idem::breaking {
namespace {

class CircuitBreaker : public AroundFailing {};

TEST_F(CircuitBreaker, R28_a_lease_that_a_reserve_ends_has_the_line_of_one_that_is_swept) {
  open(for_ever);
  inner_->behave({.error = std::nullopt});
  EXPECT_EQ(asked(reserve(1)), std::nullopt);
  EXPECT_TRUE(lines_.empty());
  EXPECT_EQ(asked(reserve(meets_a_lease_that_is_over)), std::nullopt);
  const std::string line = "lease_expired " + to_hex(RecordId{}.bytes) + " in_progress unknown";
  EXPECT_EQ(lines_, (std::vector{std::pair(LogLevel::warning, line)}));
}

TEST_F(CircuitBreaker, V15_after_failures_in_a_row_nothing_new_is_asked) {
  open(for_ever);
  give_up();
  EXPECT_EQ(inner_->calls(), 3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(asked(reserve(10 + i)), Code::unavailable);
  EXPECT_EQ(asked(Find{}), Code::unavailable);
  EXPECT_EQ(asked(Accept{}), Code::unavailable);
  EXPECT_EQ(asked(Count{}), Code::unavailable);
  EXPECT_EQ(asked(Sweep{}), Code::unavailable);
  EXPECT_EQ(inner_->calls(), 3);
  EXPECT_EQ(store_->health().refused_at_once, 104U);
  EXPECT_EQ(changes_, std::vector<std::string>{"by plan"});
}

TEST_F(CircuitBreaker, V15_an_answer_that_a_cache_may_have_given_is_no_success) {
  open(for_ever);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(asked(reserve(1)), Code::unavailable);
    inner_->behave({std::nullopt});
    EXPECT_EQ(asked(reserve(kept_in_a_cache)), std::nullopt);
    inner_->behave({Code::unavailable});
  }
  EXPECT_EQ(asked(reserve(1)), Code::unavailable);
  wait_for_changes(1);
  EXPECT_FALSE(store_->health().answers);
}

TEST_F(CircuitBreaker, V15_a_success_between_failures_begins_the_count_anew) {
  open(for_ever);
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(asked(reserve(1)), Code::unavailable);
    EXPECT_EQ(asked(reserve(2)), Code::unavailable);
    inner_->behave({std::nullopt});
    EXPECT_EQ(asked(release({})), std::nullopt);
    inner_->behave({Code::unavailable});
  }
  EXPECT_TRUE(store_->health().answers);
  EXPECT_EQ(store_->health().refused_at_once, 0U);
}

// Its disk is full, or it follows another one now.
TEST_F(CircuitBreaker, V15_that_it_reads_is_no_success_where_it_cannot_write) {
  open(1ms);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(store_->health().answers);
    inner_->behave({std::nullopt});
    EXPECT_EQ(asked(Find{}), std::nullopt);
    EXPECT_EQ(asked(Count{}), std::nullopt);
    inner_->behave({Code::unavailable});
    EXPECT_EQ(asked(reserve(i)), Code::unavailable);
  }
  wait_for_changes(1);
  // The probe is answered, and one more that would write is the trial: it is enough.
  for (std::size_t changes = 2; changes < 8; changes += 2) {
    inner_->behave({std::nullopt});
    wait_for_changes(changes);
    EXPECT_TRUE(store_->health().answers);
    inner_->behave({Code::unavailable});
    EXPECT_EQ(asked(reserve(1)), Code::unavailable);
    EXPECT_FALSE(store_->health().answers);
    wait_for_changes(changes + 1);
  }
  inner_->behave({std::nullopt});
  wait_for_changes(8);
  EXPECT_EQ(asked(reserve(1)), std::nullopt);
  inner_->behave({Code::unavailable});
  EXPECT_EQ(asked(reserve(1)), Code::unavailable);
  EXPECT_TRUE(store_->health().answers) << "it has written since, so that the count begins anew";
}

TEST_F(CircuitBreaker, V15_where_only_reading_failed_reading_is_enough) {
  open(for_ever);
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(asked(Find{}), Code::unavailable);
    EXPECT_EQ(asked(Count{}), Code::unavailable);
    inner_->behave({std::nullopt});
    EXPECT_EQ(asked(Find{}), std::nullopt);
    inner_->behave({Code::unavailable});
  }
  EXPECT_TRUE(store_->health().answers);
}

TEST_F(CircuitBreaker, V15_a_refusal_by_the_store_is_an_answer) {
  open(for_ever);
  for (const Code final : {Code::refused, Code::damaged}) {
    inner_->behave({final});
    for (int i = 0; i < 50; ++i) EXPECT_EQ(asked(reserve(i)), final);
  }
  EXPECT_TRUE(store_->health().answers);
  EXPECT_EQ(store_->health().damaged, 50U);
  EXPECT_EQ(inner_->calls(), 100);
}

// P3: what an owner knows must reach the store; its verbs go through at all times.
TEST_F(CircuitBreaker, V15_calls_that_settle_or_decide_are_always_asked) {
  open(for_ever);
  give_up();
  const Attempt attempt{};
  EXPECT_EQ(asked(Complete{{}, attempt, {}, {}}), Code::unavailable);
  EXPECT_EQ(asked(release(attempt.token)), Code::unavailable);
  EXPECT_EQ(asked(MarkUnknown{{}, attempt, {}, {}, {}}), Code::unavailable);
  EXPECT_EQ(asked(Renew{{}, attempt, {}}), Code::unavailable);
  EXPECT_EQ(asked(Dispatched{{}, attempt}), Code::unavailable);
  EXPECT_EQ(asked(Advance{{}, attempt, {}}), Code::unavailable);
  EXPECT_EQ(asked(Resolve{}), Code::unavailable);
  EXPECT_EQ(asked(CacheBust{}), Code::unavailable);
  EXPECT_EQ(asked(Reschedule{}), Code::unavailable);
  EXPECT_EQ(asked(AdoptRoutes{}), Code::unavailable);
  EXPECT_EQ(asked(AppendLine{}), Code::unavailable);
  EXPECT_EQ(asked(ReadLines{}), Code::unavailable);
  EXPECT_EQ(asked(DropJournal{}), Code::unavailable);
  EXPECT_EQ(inner_->calls(), 3 + 13);
  EXPECT_FALSE(store_->health().answers);
  inner_->behave({std::nullopt});
  EXPECT_EQ(asked(Complete{{}, attempt, {}, {}}), std::nullopt);
  wait_for_changes(2);
  EXPECT_TRUE(store_->health().answers) << "the owner's success was the probe";
  EXPECT_EQ(asked(reserve(1)), std::nullopt);
  EXPECT_EQ(changes_.back(), "back");
  EXPECT_EQ(inner_->finds(), 0) << "the pause had only begun";
}

// A table of the journals that is locked or gone must not keep clients from their records.
TEST_F(CircuitBreaker, V15_a_journal_says_nothing_about_the_store) {
  open(for_ever);
  for (const Code code : {Code::unavailable, Code::in_doubt}) {
    inner_->behave({code});
    for (int i = 0; i < 50; ++i) EXPECT_EQ(asked(AppendLine{}), code);
  }
  EXPECT_TRUE(store_->health().answers);
  inner_->behave({std::nullopt});
  EXPECT_EQ(asked(reserve(1)), std::nullopt);
}

TEST_F(CircuitBreaker, S04_the_repeat_of_a_reserve_in_doubt_goes_through_by_its_token) {
  open(for_ever);
  inner_->behave({Code::in_doubt});
  EXPECT_EQ(asked(reserve(7)), Code::in_doubt);
  inner_->behave({Code::unavailable});
  EXPECT_EQ(asked(reserve(1)), Code::unavailable);
  EXPECT_EQ(asked(reserve(2)), Code::unavailable);
  wait_for_changes(1);
  const int before = inner_->calls();
  EXPECT_EQ(asked(reserve(3)), Code::unavailable);
  EXPECT_EQ(inner_->calls(), before);
  inner_->behave({Code::in_doubt});
  EXPECT_EQ(asked(reserve(7)), Code::in_doubt);
  EXPECT_EQ(asked(reserve(7)), Code::in_doubt);
  EXPECT_EQ(inner_->calls(), before + 2);
  inner_->behave({Code::unavailable});
  EXPECT_EQ(asked(reserve(7)), Code::unavailable) << "it was asked: an answer, and no doubt left";
  EXPECT_EQ(inner_->calls(), before + 3);
  EXPECT_EQ(asked(reserve(7)), Code::unavailable);
  EXPECT_EQ(inner_->calls(), before + 3);
}

TEST_F(CircuitBreaker, S04_a_token_that_was_released_is_a_doubt_no_more) {
  open(for_ever);
  inner_->behave({Code::in_doubt});
  EXPECT_EQ(asked(reserve(7)), Code::in_doubt);
  EXPECT_EQ(asked(release(reserve(7).token)), Code::in_doubt);
  EXPECT_EQ(asked(reserve(1)), Code::in_doubt);
  wait_for_changes(1);
  EXPECT_EQ(asked(reserve(7)), Code::in_doubt) << "its release may have been lost";
  inner_->behave({Code::unavailable});
  EXPECT_EQ(asked(release(reserve(7).token)), Code::unavailable);
  const int before = inner_->calls();
  EXPECT_EQ(asked(reserve(7)), Code::unavailable);
  EXPECT_EQ(inner_->calls(), before);
}

TEST_F(CircuitBreaker, V15_it_is_looked_for_and_found_without_anybody_asking) {
  open(1ms);
  give_up();
  inner_->wait_for_finds(5);
  inner_->behave({std::nullopt});
  wait_for_changes(2);
  EXPECT_EQ(changes_.back(), "back");
  EXPECT_TRUE(store_->health().answers);
  EXPECT_EQ(asked(reserve(1)), std::nullopt);
  inner_->behave({Code::unavailable});  // And away again.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(asked(reserve(i)), Code::unavailable);
  wait_for_changes(3);
  const int before = inner_->finds();
  inner_->wait_for_finds(before + 2);
}

TEST_F(CircuitBreaker, V15_it_is_looked_for_by_one_call_at_a_time) {
  open(1ms);
  inner_->behave({Code::unavailable});
  asked(reserve(1));
  asked(reserve(2));
  inner_->behave({Code::unavailable, true});
  store_->call(StoreCall(reserve(3)), [](StoreResult) {});
  inner_->let_go(Code::unavailable);
  inner_->wait_for_finds(1);
  // Each goes through the thread that would look; the pause is over by the first.
  for (int i = 0; i < 200; ++i) EXPECT_EQ(asked(reserve(i)), Code::unavailable);
  EXPECT_EQ(inner_->finds(), 1);
  inner_->behave({std::nullopt});
  inner_->let_go(std::nullopt);
  wait_for_changes(2);
  EXPECT_TRUE(store_->health().answers);
}

// A reply that was on its way when another one had shown already that the store is back.
TEST_F(CircuitBreaker, V15_a_probe_that_comes_back_late_does_not_end_the_looking) {
  open(1ms);
  give_up();
  inner_->wait_for_finds(1);
  inner_->behave({Code::unavailable, true});
  const int before = inner_->finds();
  inner_->wait_for_finds(before + 1);  // This one is held, or the one behind it.
  inner_->behave({std::nullopt});
  EXPECT_EQ(asked(Complete{}), std::nullopt);
  wait_for_changes(2);
  inner_->let_go(std::nullopt);
  inner_->behave({Code::unavailable});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(asked(reserve(i)), Code::unavailable);
  wait_for_changes(3);
  const int again = inner_->finds();
  inner_->wait_for_finds(again + 2);
}

TEST_F(CircuitBreaker, V15_many_threads_are_each_answered_once_while_it_comes_and_goes) {
  open(1ms);
  std::atomic<int> answers{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        store_->call(StoreCall(reserve(i % 200)), [&](StoreResult) { ++answers; });
        if (i % 100 == 0) inner_->behave({i % 200 == 0 ? std::optional<Code>() : Code::in_doubt});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  store_.reset();  // Finishes what it was asked.
  EXPECT_EQ(answers.load(), 8'000);
}

TEST_F(CircuitBreaker, V15_a_call_from_a_completion_while_the_store_closes_is_answered) {
  open(for_ever);
  give_up();
  inner_->behave({Code::unavailable, true});
  std::atomic<int> answers{0};
  Store& store = *store_;  // Still there while it goes.
  store.call(StoreCall(Complete{}), [&](StoreResult) {
    ++answers;
    store.call(StoreCall(Find{}), [&](StoreResult) { ++answers; });
  });
  store_.reset();
  EXPECT_EQ(answers.load(), 2);
}

TEST_F(CircuitBreaker, all_that_a_store_has_is_passed_on) {
  open(for_ever);
  struct Nobody final : Watcher {
    void changed(const RecordId&) noexcept override {}
    std::vector<RecordId> awaited() override { return {}; }
  };
  const auto watcher = std::make_shared<Nobody>();
  store_->watch(watcher);
  EXPECT_EQ(inner_->watcher_, watcher);
  EXPECT_EQ(&store_->identity(), &inner_->identity());
  EXPECT_EQ(store_->transactions(), inner_->transactions());
}

}  // namespace
}  // namespace idem::breaking
