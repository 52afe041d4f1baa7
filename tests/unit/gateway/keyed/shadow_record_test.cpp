#include "gateway/keyed/shadow_record.hpp"
#include "store/stores.hpp"

#include <idem/store_wait.hpp>

#include <gtest/gtest.h>

/// How the attempts of shadow routes end in the store, and what their records then mean.
namespace idem::gateway {
namespace {

class ShadowRecord : public testing::Test {
 protected:
  ReserveOutcome reserve() {
    Reserve verb;
    verb.id.bytes[0] = 1;
    verb.scope = "acme";
    verb.operation = "shadow:pay";
    verb.fingerprints = {{1, {}}};
    verb.token.bytes[0] = static_cast<std::uint8_t>(++token_);
    verb.lease = Millis(60'000);
    verb.dispatched = false;
    verb.retention = verb.tombstone = Millis(60'000);
    verb.generation = store_->identity().generation;
    return ask_and_wait(*store_, std::move(verb)).value();
  }
  /// What a retry meets once the attempt has ended so.
  ReserveOutcome after(ShadowEnding ending, int status) {
    const auto won = std::get<Execute>(reserve());
    StoreCall call = ending_call(won.id, won.attempt, ending, status);
    const auto verdict = std::visit(
        [&](auto& verb) {
          if constexpr (std::is_same_v<typename std::decay_t<decltype(verb)>::Reply, OwnerReply>) {
            return ask_and_wait(*store_, std::move(verb)).value().verdict;
          }
          return Verdict::stale;
        },
        call);
    EXPECT_EQ(verdict, Verdict::done);
    return as_enforced(reserve());
  }

  std::unique_ptr<Store> store_ = std::move(open_memory({}).value());
  int token_ = 0;
};

TEST_F(ShadowRecord, S22_a_stored_answer_would_be_replayed_and_only_its_status_is_kept) {
  const auto outcome = after(ShadowEnding::stored, 201);
  const auto& replay = std::get<Replay>(outcome);
  EXPECT_EQ(replay.response.status, 201);
  EXPECT_TRUE(replay.response.body_stored);
  EXPECT_TRUE(replay.response.headers.empty());
  EXPECT_EQ(replay.response.body, "");
}

TEST_F(ShadowRecord, S22_an_answer_that_is_not_kept_would_not_be_replayed) {
  EXPECT_FALSE(std::get<Replay>(after(ShadowEnding::not_kept, 200)).response.body_stored);
}

TEST_F(ShadowRecord, S22_a_released_attempt_would_run_again) {
  EXPECT_TRUE(std::get<Execute>(after(ShadowEnding::released_declared, 429)).again);
}

TEST_F(ShadowRecord, S22_an_unsent_attempt_would_run_again) {
  EXPECT_TRUE(std::get<Execute>(after(ShadowEnding::released_proven, 0)).again);
}

TEST_F(ShadowRecord, S22_an_unknown_outcome_is_a_mark_and_no_state) {
  EXPECT_TRUE(std::holds_alternative<Unknown>(after(ShadowEnding::unknown, 0)));
  const auto census = ask_and_wait(*store_, Count{}).value();
  EXPECT_EQ(census.by_state[static_cast<std::size_t>(State::unknown)], 0U);
  EXPECT_EQ(census.by_state[static_cast<std::size_t>(State::completed)], 1U);
}

AnswerFacts facts(int status) {
  AnswerFacts facts;
  facts.status = status;
  return facts;
}

TEST(ShadowEnding, S12_is_the_meaning_of_the_answer) {
  const AnswerPolicy ietf;
  AnswerPolicy lenient;
  lenient.preset = Preset::lenient;
  EXPECT_EQ(ending_of(facts(201), ietf, true), ShadowEnding::stored);
  EXPECT_EQ(ending_of(facts(201), ietf, false), ShadowEnding::not_kept);
  EXPECT_EQ(ending_of(facts(429), ietf, true), ShadowEnding::released_declared);
  EXPECT_EQ(ending_of(facts(421), ietf, true), ShadowEnding::released_proven);
  EXPECT_EQ(ending_of(facts(500), ietf, false), ShadowEnding::unknown);
  EXPECT_EQ(ending_of(facts(500), lenient, true), ShadowEnding::released_declared);
}

}  // namespace
}  // namespace idem::gateway
