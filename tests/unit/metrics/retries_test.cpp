#include "metrics/retries.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace idem::metrics {
namespace {

RecordId id_of(std::uint8_t number) {
  RecordId id;
  id.bytes[0] = number;
  return id;
}

Retries::Seen seen(std::uint8_t number, Outcome outcome) {
  return {.id = id_of(number),
          .outcome = outcome,
          .status = 201,
          .scope = "acme",
          .route = "charges",
          .client = "127.0.0.1"};
}

TEST(Retries, many_replays_do_not_displace_a_misuse) {
  Retries retries;
  retries.note(seen(1, Outcome::key_misuse));
  for (int i = 0; i < 5'000; ++i) retries.note(seen(2, Outcome::replay));
  const auto misuses = retries.newest({.outcome = Outcome::key_misuse}, 10);
  ASSERT_EQ(misuses.size(), 1U);
  EXPECT_EQ(misuses[0].id, id_of(1));
  EXPECT_EQ(misuses[0].scope, "acme");
  EXPECT_EQ(retries.newest({.id = id_of(2)}, 10'000).size(), limits::retries_kept_of_stripe);
  EXPECT_EQ(retries.newest({}, 7).size(), 7U);
}

TEST(Retries, a_place_that_is_used_again_has_nothing_of_the_one_before) {
  Retries retries;
  const auto number = retries.note(seen(1, Outcome::key_misuse));
  retries.differ(number, {{"method", "POST", "PUT"}}, "compared");
  EXPECT_EQ(retries.newest({.id = id_of(1)}, 1)[0].differences.size(), 1U);
  for (std::size_t i = 0; i < limits::retries_kept_of_stripe; ++i) {
    retries.note(seen(2, Outcome::unknown));
  }
  EXPECT_TRUE(retries.newest({.id = id_of(1)}, 1).empty());
  retries.differ(number, {{"method", "POST", "PUT"}}, "compared late");
  for (const Retry& one : retries.newest({}, 1'000)) {
    EXPECT_TRUE(one.differences.empty());
    EXPECT_EQ(one.why, "");
  }
}

TEST(Retries, differences_go_to_the_misuse_that_was_compared_and_to_no_newer_one) {
  Retries retries;
  const auto first = retries.note(seen(1, Outcome::key_misuse));
  const auto second = retries.note(seen(1, Outcome::key_misuse));
  retries.differ(first, {{"query", "absent", "4 bytes"}}, "tried");
  for (const Retry& one : retries.newest({.id = id_of(1)}, 10)) {
    EXPECT_EQ(one.differences.size(), one.number == first ? 1U : 0U) << one.number << second;
  }
}

TEST(Retries, threads_note_and_read_at_the_same_time) {
  Retries retries;
  std::vector<std::jthread> threads;
  for (std::uint8_t number = 1; number <= 4; ++number) {
    threads.emplace_back([&retries, number] {
      for (int i = 0; i < 500; ++i) {
        const auto noted =
            retries.note(seen(number, i % 2 == 0 ? Outcome::replay : Outcome::key_misuse));
        retries.differ(noted, {}, "compared");
        EXPECT_LE(retries.newest({.id = id_of(number)}, 5).size(), 5U);
      }
    });
  }
  threads.clear();
  for (std::uint8_t number = 1; number <= 4; ++number) {
    EXPECT_FALSE(retries.newest({.id = id_of(number)}, 1).empty());
  }
}

}  // namespace
}  // namespace idem::metrics
