#include "core/bytes/utf8.hpp"

#include <gtest/gtest.h>

namespace idem::test {
namespace {

TEST(Utf8, a_beginning_cuts_no_sequence) {
  const std::string text = "a\u00E9\u20AC\U0001F600";  // 1, 2, 3 and 4 bytes.
  const std::string beginnings[] = {"",
                                    "a",
                                    "a",
                                    "a\u00E9",
                                    "a\u00E9",
                                    "a\u00E9",
                                    "a\u00E9\u20AC",
                                    "a\u00E9\u20AC",
                                    "a\u00E9\u20AC",
                                    "a\u00E9\u20AC",
                                    text,
                                    text};
  for (std::size_t bytes = 0; bytes < std::size(beginnings); ++bytes) {
    EXPECT_EQ(utf8_of(text, bytes), beginnings[bytes]) << bytes;
  }
}

TEST(Utf8, a_byte_of_no_sequence_becomes_a_question_mark) {
  EXPECT_EQ(utf8_of("a\xFF"
                    "b\xE2\x82",
                    9),
            "a?b??");
  EXPECT_EQ(utf8_of("a\xFF"
                    "b",
                    2),
            "a?")
      << "it takes no more room than it had";
}

}  // namespace
}  // namespace idem::test
