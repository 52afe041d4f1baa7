#include <gtest/gtest.h>

#include "crash/judge.hpp"

// The judge is tried with crimes that are known: a jury that never convicts proves nothing.

namespace idem::test {
namespace {

Response success(std::string body) {
  Response answer;
  answer.status = 201;
  answer.body = std::move(body);
  return answer;
}

TEST(TheJudge, convicts_a_second_execution) {
  const Provider unguarded;  // Asked directly, it charges at every retry.
  Judge judge;
  judge.sent("k", charge("k"));
  judge.answered("k", send_once(unguarded.address(), charge("k")));
  const auto verdict = judge.conclude(unguarded.address(), unguarded);
  EXPECT_EQ(verdict.keys, 1);
  ASSERT_GE(verdict.violations.size(), 2U);
  EXPECT_EQ(verdict.violations[0], "k: 2 effects");
  EXPECT_EQ(verdict.violations[1], "k: two different successes");
}

TEST(TheJudge, convicts_a_success_that_nobody_executed) {
  const Provider provider;
  Judge judge;
  judge.sent("k", charge("k", "refuse=409"));
  judge.answered("k", success("{}"));
  const auto verdict = judge.conclude(provider.address(), provider);
  ASSERT_EQ(verdict.violations.size(), 2U);
  EXPECT_EQ(verdict.violations[0], "k: a client got success, effects 0");
}

TEST(TheJudge, convicts_an_answer_that_settles_nothing) {
  const Provider provider;
  Judge judge;
  judge.sent("k", charge("k", "refuse=422"));
  const auto verdict = judge.conclude(provider.address(), provider);
  ASSERT_EQ(verdict.violations.size(), 1U);
  EXPECT_EQ(verdict.replayed + verdict.unknown, 0);
}

}  // namespace
}  // namespace idem::test
