#include "loop/loop.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace idem::http {
namespace {

/// An event that the test lets happen.
struct Event {
  std::optional<Resumption<int>> waiting;
  void happen(int value) {
    auto waited = std::move(*waiting);
    waiting.reset();
    waited(value);
  }
};

Task<int> wait_for(Event& event) {
  const auto start = [&](Resumption<int> resumption) {
    event.waiting.emplace(std::move(resumption));
  };
  auto waiting = suspend<int>(start);
  const int value = co_await waiting;
  co_return value;
}

Task<int> twice(Event& event) {
  const int first = co_await wait_for(event);
  const int second = co_await wait_for(event);
  co_return first * 10 + second;
}

struct Ending {
  explicit Ending(int& count) : count_(count) {}
  ~Ending() { ++count_; }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  int& count_;
};

Task<void> hold_and_wait(Event& event, int& ended) {
  const Ending ending(ended);
  co_await wait_for(event);
}

Root store(Task<int> task, int& result) { result = co_await std::move(task); }
Root run(Task<void> task) { co_await std::move(task); }

TEST(Task, begins_when_it_is_awaited_and_goes_on_where_it_waited) {
  Event event;
  int result = 0;
  Root root = store(twice(event), result);
  EXPECT_FALSE(event.waiting);
  root();
  event.happen(4);
  EXPECT_EQ(result, 0);
  event.happen(2);
  EXPECT_EQ(result, 42);
  EXPECT_FALSE(event.waiting);
}

TEST(Task, a_task_that_is_never_started_is_dropped) {
  Event event;
  int ended = 0;
  {
    const Root root = run(hold_and_wait(event, ended));
  }
  EXPECT_FALSE(event.waiting);
  EXPECT_EQ(ended, 0);  // Its body never ran.
}

Task<void> awaits(Task<void> inner, int& ended) {
  const Ending ending(ended);
  co_await std::move(inner);
}

TEST(Task, an_event_that_never_comes_drops_the_whole_chain) {
  Event event;
  int ended = 0;
  Root root = run(awaits(hold_and_wait(event, ended), ended));
  root();
  ASSERT_TRUE(event.waiting);
  EXPECT_EQ(ended, 0);
  event.waiting.reset();
  EXPECT_EQ(ended, 2);
}

Task<int> fails(Event& event, bool later) {
  if (later) co_await wait_for(event);
  throw std::runtime_error("no more");
}

Task<int> caught(Event& event, bool later) {
  int result = 0;
  try {
    result = co_await fails(event, later);
  } catch (const std::runtime_error& e) {
    result = std::string(e.what()) == "no more" ? 7 : -1;
  }
  co_return result;
}

TEST(Task, an_escaping_exception_is_thrown_where_it_is_awaited) {
  for (const bool later : {false, true}) {
    Event event;
    int result = 0;
    Root root = store(caught(event, later), result);
    root();
    if (later) event.happen(1);
    EXPECT_EQ(result, 7);
  }
}

Task<int> one() { co_return 1; }

Task<int> sum_of_ones(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += co_await one();
  co_return sum;
}

// A million nested resumptions would need some hundred megabytes of stack.
TEST(Task, a_loop_over_calls_that_do_not_wait_keeps_the_stack_as_it_is) {
  int result = 0;
  Root root = store(sum_of_ones(1'000'000), result);
  root();
  EXPECT_EQ(result, 1'000'000);
}

Task<int> sum_of_events(Event& event, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += co_await wait_for(event);
  co_return sum;
}

TEST(Task, a_loop_over_events_keeps_the_stack_as_it_is) {
  Event event;
  int result = 0;
  Root root = store(sum_of_events(event, 300'000), result);
  root();
  for (int i = 0; i < 300'000; ++i) event.happen(1);
  EXPECT_EQ(result, 300'000);
}

Task<void> sleep_long(Loop& loop, int& ended) {
  const Ending ending(ended);
  co_await loop.sleep(std::chrono::hours(1));
}

Task<void> fail_after_a_sleep(Loop& loop, int& ended) {
  const Ending ending(ended);
  co_await loop.sleep(Millis(1));
  throw std::runtime_error("as this test wants");
}

TEST(TaskLoop, counts_running_tasks_and_drops_them_at_its_end) {
  int ended = 0;
  {
    Loop loop;
    loop.spawn(sleep_long(loop, ended));
    loop.spawn(fail_after_a_sleep(loop, ended));
    EXPECT_EQ(loop.running(), 2U);
    std::function<void()> stop_when_one_is_left = [&] {
      if (loop.running() == 1) return loop.stop();
      loop.post([&] { stop_when_one_is_left(); });
    };
    loop.post([&] { stop_when_one_is_left(); });
    loop.run();
    EXPECT_EQ(ended, 1);
    loop.spawn(sleep_long(loop, ended));  // It never begins.
    EXPECT_EQ(loop.running(), 2U);
  }
  EXPECT_EQ(ended, 2);
}

TEST(TaskFrames, are_used_again) {
  void* const first = take_frame(3000);
  give_frame(first, 3000);
  if (kept_frame_bytes() == 0) GTEST_SKIP() << "AddressSanitizer is to see each frame's end";
  void* const second = take_frame(2990);
  EXPECT_EQ(second, first);
  give_frame(second, 2990);
}

TEST(TaskFrames, of_any_size_are_given_back_where_too_much_would_be_kept) {
  std::vector<std::pair<void*, std::size_t>> taken;
  for (std::size_t bytes = 1; bytes < 20'000; bytes += 97) {
    for (int i = 0; i < 4; ++i) taken.emplace_back(take_frame(bytes), bytes);
  }
  for (const auto& [frame, bytes] : taken) {
    std::memset(frame, 0xA5, bytes);
    give_frame(frame, bytes);
  }
  EXPECT_LE(kept_frame_bytes(), kept_frame_bytes_max);
}

}  // namespace
}  // namespace idem::http
