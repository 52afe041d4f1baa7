// Protocol §22: bounds are per scope, so that nobody takes what all share.
#include "gateway/scope_shares.hpp"

#include "gateway/background/dispatch_turns.hpp"
#include "gateway/keyed/answers_under_way.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace idem::gateway {
namespace {

using namespace std::chrono_literals;

TEST(ScopeShares, S22_one_alone_has_half_and_the_next_as_much_as_is_free) {
  ScopeShares shares(12);
  int taken = 0;
  while (shares.take("a")) ++taken;
  EXPECT_EQ(taken, 6);
  taken = 0;
  while (shares.take("b")) ++taken;
  EXPECT_EQ(taken, 3);
  EXPECT_FALSE(shares.take("a"));
  EXPECT_TRUE(shares.take("c")) << "the next one finds some";
  for (int i = 0; i < 6; ++i) shares.give_back("a");
  EXPECT_EQ(shares.taken(), 4U);
  EXPECT_EQ(shares.taken_by("a"), 0U);
  EXPECT_TRUE(shares.take("a", 5));
  EXPECT_FALSE(shares.take("d", 4)) << "three are left";
}

TEST(ScopeShares, S22_a_place_that_is_held_counts_as_one_that_is_taken) {
  ScopeShares shares(6);
  const auto first = shares.hold("a");
  const auto second = shares.hold("a");
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_TRUE(shares.take("a"));
  EXPECT_FALSE(shares.hold("a")) << "it has half";
  EXPECT_EQ(shares.taken_by("a"), 3U);
  EXPECT_TRUE(shares.hold("b"));
  shares.let_go(first);
  shares.let_go(second);
  shares.give_back("a");
  EXPECT_EQ(shares.taken(), 1U);
  for (int i = 0; i < 10'000; ++i) shares.let_go(shares.hold("scope " + std::to_string(i)));
  EXPECT_EQ(shares.taken(), 1U);
}

TEST(ScopeShares, S22_the_first_eighth_is_nobodys_and_leaves_enough_to_others) {
  ScopeShares shares(64);
  int plenty = 0;
  while (shares.take_of_plenty()) ++plenty;
  EXPECT_EQ(plenty, 8);
  int taken = 0;
  while (shares.take("a")) ++taken;
  EXPECT_EQ(taken, 28);
  taken = 0;
  while (shares.take("b")) ++taken;
  EXPECT_EQ(taken, 14);
  while (plenty-- > 0) shares.give_back_of_plenty();
  EXPECT_EQ(shares.taken(), 42U);
}

TEST(ScopeShares, S22_a_request_that_cannot_be_refused_leaves_less_to_others) {
  ScopeShares shares(10);
  shares.take_anyhow("a", 25);
  EXPECT_FALSE(shares.take("b"));
  shares.give_back("a", 25);
  EXPECT_TRUE(shares.take("b", 5));
}

TEST(ScopeShares, S22_many_that_come_and_go_leave_nothing_behind) {
  ScopeShares shares(4);
  for (int i = 0; i < 10'000; ++i) {
    const auto scope = "scope " + std::to_string(i);
    ASSERT_TRUE(shares.take(scope));
    shares.give_back(scope);
  }
  EXPECT_EQ(shares.taken(), 0U);
}

struct Job {
  std::string scope;
  int number = 0;
};

/// The entries that run, in their order, where so many places become free one after the other and
/// none of those who got one ends.
std::vector<std::string> served(DispatchTurns<Job>& turns, std::map<std::string, std::size_t> has,
                                int places) {
  std::vector<std::string> order;
  for (int i = 0; i < places; ++i) {
    const auto job = turns.next([&](const Job& one) { return std::optional(has[one.scope]); });
    if (!job) break;
    ++has[job->scope];
    order.push_back(job->scope + std::to_string(job->number));
  }
  return order;
}

TEST(DispatchTurns, S22_a_place_goes_to_the_scope_with_the_fewest_in_any_order_of_arrival) {
  DispatchTurns<Job> turns;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(turns.hold("pay", "a", {"a", i}, MonotonicTime::max()));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(turns.hold("pay", "b", {"b", i}, MonotonicTime::max()));
  EXPECT_FALSE(turns.hold("pay", "c", {"c", 0}, MonotonicTime::max()));
  const std::vector<std::string> expected{"b0", "c0", "b1", "a0", "a1", "a2", "a3", "a4"};
  EXPECT_EQ(served(turns, {{"a", 2}, {"b", 0}, {"c", 0}}, 9), expected);
  EXPECT_EQ(turns.held(), 0U);
  for (int i = 0; i < 3; ++i) turns.hold("pay", "a", {"a", i}, MonotonicTime::max());
  for (int i = 0; i < 3; ++i) turns.hold("pay", "b", {"b", i}, MonotonicTime::max());
  EXPECT_EQ(served(turns, {}, 6), (std::vector<std::string>{"a0", "b0", "a1", "b1", "a2", "b2"}));
}

TEST(DispatchTurns, S22_a_scope_that_may_have_no_place_now_delays_no_other) {
  DispatchTurns<Job> turns;
  turns.hold("pay", "a", {"a", 0}, MonotonicTime::max());
  turns.hold("pay", "b", {"b", 0}, MonotonicTime::max());
  const auto job = turns.next([](const Job& one) {
    return one.scope == "a" ? std::nullopt : std::optional<std::size_t>(7);
  });
  ASSERT_TRUE(job);
  EXPECT_EQ(job->scope, "b");
  EXPECT_TRUE(turns.holds_any("pay", "a"));
  EXPECT_FALSE(turns.holds_any("refund", "a"));
}

TEST(DispatchTurns, S22_one_tenant_holds_its_share_and_an_entry_that_waits_too_long_comes_back) {
  DispatchTurns<Job> turns;
  const MonotonicTime now{1h};
  std::size_t held = 0;
  while (!turns.hold("pay", "a", {"a", 0}, now + 5s)) ++held;
  EXPECT_EQ(held, limits::async_held_max / 2);
  EXPECT_FALSE(turns.hold("pay", "b", {"b", 0}, now + 7s));
  EXPECT_FALSE(turns.overdue(now + 4s));
  std::size_t late = 0;
  while (const auto job = turns.overdue(now + 5s)) late += job->scope == "a" ? 1 : 0;
  EXPECT_EQ(late, held);
  EXPECT_EQ(turns.held(), 1U);
}

TEST(DispatchBacklogs, S22_a_backlog_rests_until_its_turn_and_not_all_for_one_time) {
  DispatchBacklogs backlogs;
  const MonotonicTime now{1h};
  EXPECT_EQ(backlogs.rest("a", 10ms, now, 1), Millis(limits::async_put_back_rest));
  Millis last{};
  for (int i = 0; i < 100; ++i) last = backlogs.rest("a", 100ms, now, 1);
  EXPECT_EQ(last, Millis(10'010)) << "a hundred before it, at a tenth of a second each";
  EXPECT_EQ(backlogs.rest("b", 100ms, now, 1), Millis(limits::async_put_back_rest));
  for (int i = 0; i < 1'000; ++i) last = backlogs.rest("a", 100ms, now, 1);
  EXPECT_EQ(last, Millis(limits::async_put_back_rest_max));
  EXPECT_EQ(backlogs.rest("a", 100ms, now, 0), Millis(limits::async_put_back_rest_max) / 2);
  EXPECT_EQ(backlogs.rest("a", 10ms, now + 1h, 1), Millis(limits::async_put_back_rest));
}

WireAnswer filled_with(char letter, std::size_t bytes = 100UL * 1024) {
  return {200, {}, std::string(bytes, letter)};
}

TEST(AnswersUnderWay, S22_one_answer_is_one_copy_however_many_it_goes_to) {
  const auto answers = std::make_shared<AnswersUnderWay>(1024UL * 1024);
  std::vector<WireAnswer> sent;
  for (int i = 0; i < 300; ++i) {
    WireAnswer answer = filled_with('x');
    ASSERT_TRUE(answers->admit({{1}}, "acme", answer)) << i;
    EXPECT_EQ(answer.body_bytes(), filled_with('x').body);
    EXPECT_TRUE(answer.body.empty());
    sent.push_back(std::move(answer));
    EXPECT_EQ(sent.back().body_bytes().data(), sent.front().body_bytes().data());
  }
}

TEST(AnswersUnderWay, S22_other_bytes_are_another_answer_whatever_the_record) {
  const auto answers = std::make_shared<AnswersUnderWay>(1024UL * 1024);
  WireAnswer first = filled_with('x');
  WireAnswer second = filled_with('y');
  ASSERT_TRUE(answers->admit({{1}}, "acme", first));
  ASSERT_TRUE(answers->admit({{1}}, "acme", second));
  EXPECT_EQ(first.body_bytes(), filled_with('x').body);
  EXPECT_EQ(second.body_bytes(), filled_with('y').body);
}

TEST(AnswersUnderWay, S22_bytes_are_bounded_for_each_scope_and_come_back) {
  const auto answers = std::make_shared<AnswersUnderWay>(1000UL * 1024);
  std::vector<WireAnswer> sent;
  const auto admit = [&](std::uint8_t record, const std::string& scope) {
    WireAnswer answer = filled_with('x');
    const bool admitted = answers->admit({{record}}, scope, answer);
    EXPECT_EQ(answer.body_bytes(), filled_with('x').body) << "also where it was refused";
    if (admitted) sent.push_back(std::move(answer));
    return admitted;
  };
  std::uint8_t record = 0;
  while (admit(++record, "acme")) {
  }
  EXPECT_EQ(sent.size(), 5U);
  EXPECT_TRUE(admit(100, "globex"));
  EXPECT_TRUE(admit(1, "acme")) << "that one is on its way already";
  WireAnswer own = filled_with('z');
  answers->admit_anyhow({{200}}, "acme", own);
  EXPECT_EQ(own.body_bytes(), filled_with('z').body);
  sent.clear();
  own = WireAnswer();
  for (std::uint8_t i = 1; i <= 5; ++i) EXPECT_TRUE(admit(i, "acme"));
}

TEST(AnswersUnderWay, S22_small_answers_are_not_counted) {
  const auto answers = std::make_shared<AnswersUnderWay>(0);
  WireAnswer answer = filled_with('x', 1'000);
  EXPECT_TRUE(answers->admit({{1}}, "acme", answer));
  EXPECT_EQ(answer.body, filled_with('x', 1'000).body);
}

}  // namespace
}  // namespace idem::gateway
