#include "store/dynamodb/date_clock.hpp"
#include "store/dynamodb/transfers.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

/// The service's clock, seen through the whole seconds of its answers.
namespace idem::dynamodb {
namespace {

using namespace std::chrono_literals;

/// A service whose clock is `ahead` of this machine's monotonic one, and drifts.
struct Service {
  Millis ahead;
  double drift = 0;
  StoreTime at(MonotonicTime now) const {
    const Millis passed = now.time_since_epoch();
    const auto drifted = static_cast<Millis::rep>(static_cast<double>(passed.count()) * drift);
    return StoreTime(passed + ahead + Millis(drifted));
  }
  StoreTime date_at(MonotonicTime now) const {
    return StoreTime(std::chrono::floor<std::chrono::seconds>(at(now).time_since_epoch()));
  }
};

unsigned seed() {
  const char* const given = std::getenv("IDEM_SEED");
  const unsigned chosen =
      given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
  std::printf("seed %u\n", chosen);
  return chosen;
}

TEST(DateClock, S15_the_estimate_is_never_ahead_and_its_uncertainty_holds_the_truth) {
  std::mt19937 dice(seed());
  for (int round = 0; round < 200; ++round) {
    const Service service{
        Millis(std::uniform_int_distribution<int>(-2'000'000'000, 2'000'000'000)(dice)),
        std::uniform_real_distribution<double>(-0.0003, 0.0003)(dice)};
    DateClock clock;
    MonotonicTime now{1'000'000ms};
    for (int i = 0; i < 300; ++i) {
      now += Millis(std::uniform_int_distribution<int>(0, 4'000)(dice));
      const MonotonicTime sent = now;
      const MonotonicTime there = sent + Millis(std::uniform_int_distribution<int>(0, 80)(dice));
      const MonotonicTime received =
          there + Millis(std::uniform_int_distribution<int>(0, 80)(dice));
      clock.observe(service.date_at(there), sent, received);
      now = received;
      ASSERT_LE(clock.at(now), service.at(now) + 2ms) << "round " << round << ", answer " << i;
      ASSERT_GE(clock.at(now) + clock.uncertainty(now) + 2ms, service.at(now))
          << "round " << round << ", answer " << i;
    }
    EXPECT_LT(clock.uncertainty(now), 600ms);
  }
}

TEST(DateClock, S15_two_nodes_never_end_a_lease_before_its_length_is_over) {
  std::mt19937 dice(seed());
  for (int round = 0; round < 500; ++round) {
    const Service service{Millis(std::uniform_int_distribution<int>(0, 2'000'000'000)(dice))};
    DateClock owner;
    DateClock other;
    MonotonicTime now{Millis(std::uniform_int_distribution<int>(1'000, 999'999)(dice))};
    owner.observe(service.date_at(now), now, now + 30ms);
    now += Millis(std::uniform_int_distribution<int>(0, 3'000)(dice));
    other.observe(service.date_at(now), now, now + 1ms);
    for (int i = 0; i < 20; ++i) {
      const MonotonicTime sent = now + Millis(i * 97);
      other.observe(service.date_at(sent), sent, sent + 1ms);
    }
    now += 3s;
    const Millis length = 10s;
    const StoreTime until = owner.at(now) + length + owner.uncertainty(now);
    const MonotonicTime end = now + length;
    EXPECT_LE(other.at(end - 3ms), until) << "round " << round;
  }
}

TEST(DateClock, S15_one_server_with_a_wrong_clock_changes_nothing) {
  const Service right{5'000'000ms};
  const Service wrong{5'000'000ms + 1h};
  DateClock clock;
  MonotonicTime now{1'000'000ms};
  for (int i = 0; i < 100; ++i) {
    now += 250ms;
    const Service& service = i % 5 == 4 ? wrong : right;
    clock.observe(service.date_at(now), now, now + 5ms);
    ASSERT_LE(clock.at(now), right.at(now));
  }
}

TEST(DateClock, S15_a_clock_that_was_set_anew_is_followed) {
  DateClock clock;
  MonotonicTime now{1'000'000ms};
  for (int i = 0; i < 40; ++i) {
    now += 250ms;
    const Service service{i < 20 ? 5'000'000ms : 5'000'000ms + 1h};
    clock.observe(service.date_at(now), now, now + 5ms);
  }
  const Service last{5'000'000ms + 1h};
  EXPECT_LE(clock.at(now), last.at(now));
  EXPECT_GT(clock.at(now) + 1s, last.at(now));
}

TEST(DateClock, S15_dates_of_http_are_read) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), StoreTime(784'111'777s));
  EXPECT_FALSE(parse_http_date("yesterday, perhaps").has_value());
}

}  // namespace
}  // namespace idem::dynamodb
