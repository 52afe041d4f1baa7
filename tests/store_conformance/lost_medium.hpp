#pragma once

#include "store_conformance/harness.hpp"

namespace idem::test {

/// A store whose files are taken away while it is open.
class OnLostMedium : public testing::Test {
 protected:
  /// The error's code; none for an answer of the store's.
  template <class Verb>
  std::optional<StoreError::Code> error_of(Verb verb) {
    if constexpr (std::is_same_v<Verb, Reserve>) verb.generation = 1;
    const auto reply = ask_and_wait(*store_, std::move(verb));
    return reply ? std::nullopt : std::optional(reply.error().code);
  }
  std::string outcome_of(int key_number) { return outcome_of(*store_, key_number); }
  static std::string outcome_of(Store& store, int key_number) {
    Reserve verb = a_reserve(key_number, 2);
    verb.generation = 1;
    const auto outcome = ask_and_wait(store, verb);
    if (!outcome) return outcome.error().detail;
    return is<Replay>(*outcome) ? "replay" : describe(*outcome);
  }
  void complete(int key_number) {
    Reserve verb = a_reserve(key_number);
    verb.generation = 1;
    const auto outcome = ask_and_wait(*store_, verb);
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    ASSERT_TRUE(ask_and_wait(*store_, a_complete(std::get<Execute>(*outcome))));
  }

  /// The first commit into a file that is gone may be found some day, the others are not even made.
  void expect_nothing_is_stored() {
    using Code = StoreError::Code;
    EXPECT_EQ(error_of(a_reserve(2)), Code::in_doubt);
    EXPECT_EQ(error_of(a_reserve(3)), Code::unavailable);
    EXPECT_EQ(error_of(a_reserve(1, 2)), Code::unavailable) << "no replay either";
    EXPECT_EQ(error_of(Find{key(1)}), Code::unavailable);
    EXPECT_EQ(error_of(Complete{key(2), {std::nullopt, token(1)}, answer(), ""}),
              Code::unavailable);
    EXPECT_EQ(error_of(List{}), Code::unavailable);
    EXPECT_NE(outcome_of(1).find("was moved, replaced or deleted"), std::string::npos)
        << outcome_of(1);
  }

  TestClock clock;
  TempFolder folder_;
  std::unique_ptr<Store> store_;
};

}  // namespace idem::test
