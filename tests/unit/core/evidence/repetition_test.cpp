#include "core/evidence/repetition.hpp"

#include <idem/foreign_call.hpp>

#include <gtest/gtest.h>

#include <set>

namespace idem {
namespace {

using namespace std::chrono_literals;

constexpr Declared by_window{.deduplicates = 1h, .timeout = 10s};
constexpr Declared by_lookup{.has_lookup = true, .lookup_grace = 60s, .timeout = 10s};
constexpr Declared by_nothing{.timeout = 10s};

TEST(Repetition, S16_a_call_that_was_not_made_is_made) {
  for (const Declared& declared : {by_window, by_lookup, by_nothing}) {
    EXPECT_EQ(next_step({.first_ago = 48h}, declared).step, NextStep::send);
  }
}

TEST(Repetition, S16_a_repeat_must_arrive_within_the_window) {
  const auto step = [](Millis ago) {
    return next_step({.quiet_for = 0ms, .first_ago = ago}, by_window).step;
  };
  EXPECT_EQ(step(0ms), NextStep::send);
  EXPECT_EQ(step(1h - 10s - 1ms), NextStep::send);
  EXPECT_EQ(step(1h - 10s), NextStep::give_up);
  EXPECT_EQ(step(48h), NextStep::give_up);
}

TEST(Repetition, S19_a_lookup_counts_only_after_the_last_call_and_the_grace) {
  const auto next = [](Millis quiet) {
    return next_step({.quiet_for = quiet, .first_ago = quiet}, by_lookup);
  };
  EXPECT_EQ(next(0ms).step, NextStep::wait);
  EXPECT_EQ(next(0ms).wait, 60s + 1ms);
  EXPECT_EQ(next(60s).step, NextStep::wait);
  EXPECT_EQ(next(60s).wait, 1ms);
  EXPECT_EQ(next(60s + 1ms).step, NextStep::look_up);
}

TEST(Repetition, S16_past_its_window_a_call_with_a_lookup_is_looked_up) {
  Declared both = by_lookup;
  both.deduplicates = 1h;
  EXPECT_EQ(next_step({.quiet_for = 5min, .first_ago = 5min}, both).step, NextStep::send);
  EXPECT_EQ(next_step({.quiet_for = 5min, .first_ago = 2h}, both).step, NextStep::look_up);
}

TEST(Repetition, S16_with_nothing_declared_it_is_never_made_again) {
  EXPECT_EQ(next_step({.quiet_for = 0ms, .first_ago = 0ms}, by_nothing).step, NextStep::give_up);
}

TEST(Repetition, V24_a_derived_key_names_one_call_of_one_record) {
  RecordId one;
  RecordId other;
  other.bytes[15] = 1;
  std::set<std::string> keys{derived_key(one, "charged"),      derived_key(other, "charged"),
                             derived_key(one, "refunded"),     derived_key(one, "charged", "m"),
                             derived_key(one, "charge", "dm"), derived_key(one, "", "charged")};
  EXPECT_EQ(keys.size(), 6);
  for (const auto& key : keys) EXPECT_EQ(key.size(), 32);
  EXPECT_EQ(derived_key(one, "charged"), derived_key(one, "charged"));
}

}  // namespace
}  // namespace idem
