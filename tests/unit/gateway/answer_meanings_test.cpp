#include "gateway/answer_meanings.hpp"

#include <gtest/gtest.h>

/// What each status means, and what decides that.
namespace idem::gateway {
namespace {

AnswerMeaning of(int status, const AnswerPolicy& policy, bool retry_after = false) {
  for (const auto& one : meanings_of(policy, retry_after)) {
    if (one.first <= status && status <= one.last) return one;
  }
  return {};
}

TEST(AnswerMeanings, S12_cover_each_final_status_once_and_agree_with_the_disposition) {
  const AnswerPolicy policy{.preset = Preset::stripe,
                            .statuses = {{402, StatusRule::release}},
                            .errors_rolled_back = true};
  int next = 200;
  for (const auto& one : meanings_of(policy, false)) {
    EXPECT_EQ(one.first, next);
    next = one.last + 1;
    for (int status = one.first; status <= one.last; ++status) {
      AnswerFacts facts;
      facts.status = status;
      const auto meaning = disposition(facts, policy);
      EXPECT_EQ(one.outcome == "stored", meaning == Disposition::store) << status;
      EXPECT_EQ(one.outcome == "unknown", meaning == Disposition::unknown) << status;
    }
  }
  EXPECT_EQ(next, 600);
}

TEST(AnswerMeanings, S12_say_what_decides) {
  const AnswerPolicy policy{.preset = Preset::ietf,
                            .statuses = {{402, StatusRule::store}, {421, StatusRule::store}},
                            .errors_rolled_back = true};
  EXPECT_EQ(of(402, policy).by, DecidedBy::route) << "also where the preset says the same";
  EXPECT_EQ(of(421, policy).by, DecidedBy::proof) << "no rule of a route changes a proof";
  EXPECT_EQ(of(421, policy).outcome, "released");
  EXPECT_EQ(of(500, policy).by, DecidedBy::route);
  EXPECT_EQ(of(500, policy).outcome, "released");
  EXPECT_EQ(of(502, policy).by, DecidedBy::preset);
  EXPECT_EQ(of(409, policy).outcome, "stored");
  EXPECT_EQ(of(409, policy, true).outcome, "unknown");
}

}  // namespace
}  // namespace idem::gateway
