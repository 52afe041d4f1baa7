#include "admin/shared_census.hpp"

#include "unit/admin/admin_over_store.hpp"

/// One census for several answers.
namespace idem::admin {
namespace {

constexpr auto state_of_unknown = static_cast<std::size_t>(State::unknown);

class CountedOnce : public AdminOverStore {
 protected:
  CountedOnce() {
    fault_ = [this](const StoreCall& call) -> std::optional<Fault> {
      if (!std::holds_alternative<Count>(call)) return Fault::none;
      ++counted_;
      return is_down_ ? Fault::lose_call : Fault::none;
    };
  }
  SharedCensus::Result recent(Millis age) {
    return run([&] { return census_.recent(age); });
  }

  std::atomic<int> counted_{0};
  std::atomic<bool> is_down_{false};
  SharedCensus census_{loop_, *store_};
};

TEST_F(CountedOnce, a_small_store_is_counted_for_each_answer_that_wants_it_fresh) {
  EXPECT_EQ(recent(Millis(0))->by_state[state_of_unknown], 0U);
  unknown(1);
  EXPECT_EQ(recent(Millis(0))->by_state[state_of_unknown], 1U);
  EXPECT_EQ(counted_, 2);
}

TEST_F(CountedOnce, a_search_shares_what_another_answer_has_counted) {
  const auto first = recent(std::chrono::minutes(1));
  unknown(1);
  const auto second = recent(std::chrono::minutes(1));
  EXPECT_EQ(second->by_state, first->by_state);
  EXPECT_GE(second->now, first->now);
  EXPECT_EQ(counted_, 1);
  EXPECT_EQ(run([&] { return census_.fresh(); })->by_state[state_of_unknown], 1U);
  EXPECT_EQ(recent(std::chrono::minutes(1))->by_state[state_of_unknown], 1U);
  EXPECT_EQ(counted_, 2);
}

TEST_F(CountedOnce, a_decision_of_this_process_is_counted) {
  EXPECT_TRUE(recent(std::chrono::minutes(1)));
  unknown(1);
  census_.forget();
  EXPECT_EQ(recent(std::chrono::minutes(1))->by_state[state_of_unknown], 1U);
}

TEST_F(CountedOnce, a_store_that_does_not_answer_leaves_no_counts) {
  EXPECT_TRUE(recent(std::chrono::minutes(1)));
  is_down_ = true;
  EXPECT_FALSE(run([&] { return census_.fresh(); }));
  EXPECT_FALSE(recent(std::chrono::minutes(1))) << "what was counted before would hide it";
}

}  // namespace
}  // namespace idem::admin
