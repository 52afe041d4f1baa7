#include "core/exchange/preferences.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace idem::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

std::optional<seconds> preferred(std::initializer_list<std::string_view> lines) {
  PreferredWait wait;
  for (const auto line : lines) wait.read(line);
  return wait.value();
}

TEST(Preferences, S07_wait_is_read_in_all_its_spellings) {
  for (const auto* line :
       {"wait=10", "WAIT=10", " wait = 10 ", "wait=\"10\"", "wait=010", "respond-async, wait=10",
        "respond-async,wait=10;foo=bar", "a=\"x, wait=3\", wait=10", "a=\"\\\", wait=3\",wait=10",
        ",, ,wait=10", "wait=10, wait=20", "b;wait=3, wait=10", "=, wait=10", "wait\t=\t10"}) {
    EXPECT_EQ(preferred({line}), 10s) << line;
  }
  EXPECT_EQ(preferred({"wait=0"}), 0s);
}

TEST(Preferences, S07_the_first_of_all_lines_counts) {
  EXPECT_EQ(preferred({"respond-async", "wait=10", "wait=20"}), 10s);
  EXPECT_EQ(preferred({"wait=x", "wait=20"}), std::nullopt) << "a bad first one hides the second";
}

TEST(Preferences, S07_a_wait_that_is_no_number_of_seconds_is_ignored) {
  for (const auto* line : {"", "wait", "wait=", "wait=\"\"", "wait=-1", "wait=+1", "wait=1.5",
                           "wait=1s", "wait=1 2", "wait=\"1", "wait=\"\\1\"", "waits=1", "xwait=1",
                           "wait x=1", "a;wait=1", "a=wait=1", "wait:1", "\"wait=1\""}) {
    EXPECT_EQ(preferred({line}), std::nullopt) << line;
  }
}

TEST(Preferences, S07_more_seconds_than_can_be_counted_are_as_many_as_can) {
  const auto most = preferred({"wait=" + std::string(5'000, '9')});
  ASSERT_TRUE(most);
  EXPECT_GE(*most, 24h * 365 * 100 - 1s);
  EXPECT_EQ(wait_rule(0ms, 30s, most).time, 30s);
}

TEST(Preferences, S07_a_preference_shortens_and_lengthens_up_to_the_routes_maximum) {
  EXPECT_EQ(wait_rule(0ms, 30s, std::nullopt).time, 0ms);
  EXPECT_EQ(wait_rule(30s, 30s, std::nullopt).time, 30s);
  EXPECT_EQ(wait_rule(30s, 30s, std::nullopt).applied, std::nullopt);
  EXPECT_EQ(wait_rule(0ms, 30s, 5s).time, 5s);
  EXPECT_EQ(wait_rule(0ms, 30s, 5s).applied, 5s);
  EXPECT_EQ(wait_rule(30s, 30s, 5s).time, 5s);
  EXPECT_EQ(wait_rule(0ms, 30s, 90s).time, 30s);
  EXPECT_EQ(wait_rule(0ms, 30s, 90s).applied, 30s)
      << "the applied wait is named, not the asked one";
  EXPECT_EQ(wait_rule(30s, 30s, 0s).time, 0ms);
  EXPECT_EQ(wait_rule(30s, 30s, 0s).applied, 0s);
  EXPECT_EQ(wait_rule(0ms, 0ms, 5s).time, 0ms);
  EXPECT_EQ(wait_rule(0ms, 0ms, 5s).applied, std::nullopt) << "it was not met at all";
}

TEST(Preferences, S07_respond_async_is_found_at_any_position) {
  for (const auto* line : {"respond-async", "RESPOND-ASYNC", "wait=10, respond-async",
                           "respond-async;x=y", " a=b ,respond-async", "respond-async=\"\""}) {
    EXPECT_TRUE(prefers_async(line)) << line;
  }
  for (const auto* line : {"", "respond", "x=respond-async", "x=\", respond-async\"", "wait=10"}) {
    EXPECT_FALSE(prefers_async(line)) << line;
  }
}

TEST(Preferences, S07_an_applied_preference_is_not_passed_on) {
  EXPECT_EQ(without_met("respond-async, wait=10"), "");
  EXPECT_EQ(without_met("return=minimal;a=\"b,c\", WAIT=3 , handling=lenient"),
            "return=minimal;a=\"b,c\", handling=lenient");
  EXPECT_EQ(without_met(""), "");
}

}  // namespace
}  // namespace idem::test
