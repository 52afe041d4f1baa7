#include "core/exchange/backoff.hpp"

#include <gtest/gtest.h>

namespace idem {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, S18_doubles_up_to_the_longest_and_chance_removes_half_at_most) {
  EXPECT_EQ(backoff(1, 2s, 1h, 0), 2s);
  EXPECT_EQ(backoff(2, 2s, 1h, 0), 4s);
  EXPECT_EQ(backoff(5, 2s, 1h, 0), 32s);
  EXPECT_EQ(backoff(5, 2s, 1h, 1), 16s);
  EXPECT_EQ(backoff(30, 2s, 1h, 0), 1h);
  EXPECT_EQ(backoff(1'000'000, 2s, 1h, 0), 1h);
  EXPECT_EQ(backoff(0, 2s, 1h, 0), 2s);
}

TEST(Breaker, S18_opens_after_failures_in_a_row_and_one_success_closes_it) {
  Breaker breaker({.failures = 3, .pause_first = 5s, .pause_max = 12s});
  MonotonicTime now{1h};
  breaker.failed(now);
  breaker.failed(now);
  EXPECT_FALSE(breaker.is_open(now));
  breaker.succeeded();
  breaker.failed(now);
  breaker.failed(now);
  EXPECT_FALSE(breaker.is_open(now));
  breaker.failed(now);
  EXPECT_TRUE(breaker.is_open(now));
  EXPECT_FALSE(breaker.is_open(now + 5s));
  EXPECT_TRUE(breaker.is_on_trial());
  now += 5s;
  breaker.failed(now);  // The trial: a longer pause.
  EXPECT_TRUE(breaker.is_open(now + 9s));
  EXPECT_FALSE(breaker.is_open(now + 10s));
  now += 10s;
  breaker.failed(now);
  EXPECT_FALSE(breaker.is_open(now + 12s));
  now += 12s;
  breaker.succeeded();
  EXPECT_FALSE(breaker.is_on_trial());
  breaker.failed(now);
  EXPECT_FALSE(breaker.is_open(now));
}

TEST(Breaker, V15_many_failures_at_one_moment_are_one_event_where_they_must_last) {
  Breaker breaker({.failures = 3, .pause_first = 5s, .pause_max = 12s, .lasting = 1s});
  const MonotonicTime now{1h};
  for (int i = 0; i < 100; ++i) breaker.failed(now);
  EXPECT_FALSE(breaker.is_on_trial());
  breaker.failed(now + 999ms);
  EXPECT_FALSE(breaker.is_on_trial());
  breaker.failed(now + 1s);
  EXPECT_TRUE(breaker.is_on_trial());
  EXPECT_TRUE(breaker.is_open(now + 1s + 4999ms));
  EXPECT_FALSE(breaker.is_open(now + 6s));
  breaker.failed(now + 6s);  // The trial: it need not last.
  EXPECT_TRUE(breaker.is_open(now + 15s));
  breaker.succeeded();
  // Since a success they are counted, and their time is taken, anew.
  for (int i = 0; i < 3; ++i) breaker.failed(now + 1h);
  EXPECT_FALSE(breaker.is_on_trial());
}

}  // namespace
}  // namespace idem
