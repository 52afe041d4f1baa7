#include "loop/loop_watch.hpp"

#include <gtest/gtest.h>

#include <thread>

/// What the probes say of loops.
namespace idem::test {
namespace {

constexpr Millis least{5'000};

class LoopWatchTest : public testing::Test {
 protected:
  /// The watching loop turns for so long, as often as it does when nothing holds it.
  void watch_for(Millis time) {
    for (const auto end = now_ + time; now_ < end;) watch_.tick(now_ += Loop::tick_interval);
  }
  static void let_turn(Loop& loop) {
    std::thread thread([&] { loop.run("idem-test"); });
    const auto before = loop.ticks();
    while (loop.ticks() == before) std::this_thread::yield();
    loop.post([&] { loop.stop(); });
    thread.join();
  }

  Loop own_;
  Loop clients_;
  Loop background_;
  MonotonicTime now_ = MonotonicClock::now();
  LoopWatch watch_{own_, {{"clients", &clients_, true}, {"background", &background_, false}}};
};

TEST_F(LoopWatchTest, R02_a_loop_that_stands_still_is_named) {
  watch_for(least - Millis(1'000));
  EXPECT_FALSE(watch_.longest(least, false));
  let_turn(background_);
  watch_for(Millis(1'500));
  const auto found = watch_.longest(least, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "clients");
  EXPECT_GE(found->lasting, least);
  EXPECT_TRUE(watch_.longest(least, true));
  let_turn(clients_);
  watch_for(Millis(25));
  EXPECT_FALSE(watch_.longest(least, false));
}

TEST_F(LoopWatchTest, R02_a_loop_of_no_clients_counts_only_where_all_do) {
  watch_for(least + Millis(500));
  let_turn(clients_);
  watch_for(Millis(25));
  EXPECT_FALSE(watch_.longest(least, true));
  const auto found = watch_.longest(least, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "background");
}

TEST_F(LoopWatchTest, R02_a_machine_that_slept_has_no_loop_that_stands_still) {
  watch_for(Millis(100));
  watch_.tick(now_ += std::chrono::hours(1));
  EXPECT_FALSE(watch_.longest(least, false));
}

}  // namespace
}  // namespace idem::test
