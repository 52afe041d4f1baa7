// What tests can do to the process that they run in: runner_test.py asks the runner about each.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace idem::test {
namespace {

TEST(Passing, one) {}
TEST(Passing, two) {}
TEST(Passing, three) {}

TEST(Failing, fails) { EXPECT_EQ(1, 2) << "words of the failure"; }
TEST(Failing, passes) {}

TEST(Skipping, skips) { GTEST_SKIP() << "nothing to ask here"; }

TEST(Aborting, aborts) {
  std::cerr << "words before the end" << std::endl;
  std::abort();
}
TEST(Aborting, passes) {}

TEST(Exiting, exits) { std::_Exit(0); }
TEST(Exiting, passes) {}

TEST(Hanging, hangs) {
  std::cerr << "words before the silence" << std::endl;
  for (;;) ::pause();
}
TEST(Hanging, passes) {}

TEST(Unfinished, line) { std::cout << "a line without an end" << std::flush; }

TEST(Endless, line) {
  const std::string part(1U << 20U, 'x');
  for (int i = 0; i < 100; ++i) std::cout << part;
  std::cout << std::flush;
}
TEST(Endless, output) {
  for (;;) std::cout << "again\n";
}

TEST(Deadly, dies) { EXPECT_DEATH(std::abort(), ""); }

// Like a leak or a race that a sanitizer reports when the process ends.
TEST(BadEnd, ends_with_a_code) {
  std::atexit([] { std::_Exit(23); });
}
TEST(BadEnd, passes) {}

class NoSetUp : public testing::Test {
 protected:
  static void SetUpTestSuite() { std::abort(); }
};
TEST_F(NoSetUp, one) {}
TEST_F(NoSetUp, two) {}

class OfNumbers : public testing::TestWithParam<int> {};
TEST_P(OfNumbers, are_not_two) { EXPECT_NE(GetParam(), 2); }
INSTANTIATE_TEST_SUITE_P(Few, OfNumbers, testing::Values(1, 2, 3));

template <typename T>
class OfTypes : public testing::Test {};
using Types = testing::Types<int, char>;
TYPED_TEST_SUITE(OfTypes, Types);
TYPED_TEST(OfTypes, are_small) { EXPECT_LT(sizeof(TypeParam), 2U); }

// A server that a test leaves, in a session of its own.
TEST(Leaving, leaves_a_process) {
  if (std::system("setsid sleep 1000 & echo $! >left_process") != 0) FAIL();
}

int tests_of_this_process = 0;
TEST(Shared, first) { EXPECT_EQ(++tests_of_this_process, 1); }
TEST(Shared, second) { EXPECT_EQ(++tests_of_this_process, 2); }

}  // namespace
}  // namespace idem::test
