#include "store_conformance/harness.hpp"

/// Protocol §19: who is asked how an attempt ended, and what by, is kept with it.
namespace idem::test {
namespace {

class Asked : public StoreConformance {
 protected:
  static Reserve asking(int key_number, std::string provider, std::string sealed_key = {},
                        int token_number = 1) {
    Reserve verb = a_reserve(key_number, token_number);
    verb.provider = std::move(provider);
    verb.sealed_key = std::move(sealed_key);
    return verb;
  }
  void expect_asked(int key_number, const std::string& provider, const std::string& sealed_key) {
    const auto record = find(key_number);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->provider, provider);
    EXPECT_EQ(record->sealed_key, sealed_key);
  }

  const std::string sealed_ = std::string("\0sealed\xff", 8);
};

INSTANTIATE_TEST_SUITE_P(Stores, Asked, every_store(), name_of_store);

TEST_P(Asked, S19_stays_with_the_attempt_until_it_completes) {
  const Execute first = run(asking(1, "bank", sealed_));
  expect_asked(1, "bank", sealed_);
  if (is_durable()) reopen();
  expect_asked(1, "bank", sealed_);
  ask(a_mark_unknown(first));
  expect_asked(1, "bank", sealed_);
  const auto listed = ask(List{.state = State::unknown});
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].provider, "bank");
  EXPECT_EQ(listed[0].sealed_key, sealed_);
  ask(a_complete(first));
  expect_asked(1, "bank", "");
  EXPECT_TRUE(is<Replay>(ask(asking(1, "other", "more", 2))));
  expect_asked(1, "bank", "");
}

TEST_P(Asked, S19_completes_without_it_from_its_first_attempt) {
  const Execute usual = run(asking(1, "bank", sealed_));
  const Execute larger = run(asking(2, "bank", sealed_));
  ask(a_complete(usual));
  ask(a_complete(larger, answer(200, std::string(20'000, 'x'))));
  expect_asked(1, "bank", "");
  expect_asked(2, "bank", "");
}

TEST_P(Asked, S19_the_next_attempts_route_sets_it_anew) {
  const Execute first = run(asking(1, "bank", sealed_));
  ask(a_release(first));
  expect_asked(1, "bank", sealed_);
  run(asking(1, "other", "", 2));
  expect_asked(1, "other", "");
}

TEST_P(Asked, S19_an_attempt_whose_owner_is_gone_has_it_too) {
  run(asking(1, "bank", sealed_));
  clock.advance(lease + 1ms);
  ASSERT_EQ(sweep().size(), 1U);
  EXPECT_EQ(state(1), State::unknown);
  expect_asked(1, "bank", sealed_);
  EXPECT_TRUE(is<Unknown>(ask(asking(1, "other", "more", 2))));
  expect_asked(1, "bank", sealed_);
}

// It is accepted by one route and sent by that of a later day, so that only the latter knows whom.
TEST_P(Asked, S19_a_stored_request_is_asked_about_by_the_route_that_sends_it) {
  Accept verb = an_accept(1);
  verb.as = asking(1, "bank", sealed_);
  ASSERT_TRUE(is<Pending>(ask(verb)));
  expect_asked(1, "bank", sealed_);
  ask(a_mark_unknown(claim()));
  expect_asked(1, "", sealed_);
}

TEST_P(Asked, S19_most_are_asked_about_by_nobody_and_each_has_its_own) {
  run(asking(1, "bank"));
  run(a_reserve(2));
  run(asking(3, "other", sealed_));
  expect_asked(1, "bank", "");
  expect_asked(2, "", "");
  expect_asked(3, "other", sealed_);
}

}  // namespace
}  // namespace idem::test
