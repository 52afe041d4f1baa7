#include "core/bytes/ascii.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace idem::test {
namespace {

TEST(Ascii, only_its_own_letters_change_their_case) {
  EXPECT_EQ(lower_case("AZaz09-_\xC3\x84"), "azaz09-_\xC3\x84");
  EXPECT_EQ(upper_case("AZaz09-_\xC3\xA4"), "AZAZ09-_\xC3\xA4");
}

TEST(Ascii, names_are_equal_in_either_case_and_nothing_else_is_folded) {
  EXPECT_TRUE(equal_names("", ""));
  EXPECT_TRUE(equal_names("Content-Type", "cONTENT-tYPE"));
  EXPECT_FALSE(equal_names("Content-Type", "Content-Typ"));
  EXPECT_FALSE(equal_names("a-b", "a\rb")) << "one bit apart, and no letters";
  EXPECT_FALSE(equal_names("[", "{"));
  EXPECT_FALSE(equal_names("\xC3\x84", "\xC3\xA4"));
}

TEST(Ascii, a_hexadecimal_digit_has_a_value_in_either_case) {
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(hex_value("0123456789abcdef"[i]), i);
    EXPECT_EQ(hex_value("0123456789ABCDEF"[i]), i);
  }
  for (const char c : {'g', 'G', '/', ':', '@', '`', '\0', '\xB0'}) EXPECT_EQ(hex_value(c), -1);
}

TEST(Ascii, only_the_named_blanks_are_trimmed) {
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed("\ta b "), "a b");
  EXPECT_EQ(trimmed(" a\r\n"), "a\r\n");
  EXPECT_EQ(trimmed(" a\r\n", " \t\r\n"), "a");
  EXPECT_EQ(trimmed("\ta ", " "), "\ta");
}

TEST(Ascii, the_parts_of_a_text_are_taken_in_turn) {
  const auto parts = [](std::string_view text) {
    std::vector<std::string_view> all;
    while (!text.empty()) all.push_back(take_until(text, ','));
    return all;
  };
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(parts(""), Parts{});
  EXPECT_EQ(parts("a"), Parts{"a"});
  EXPECT_EQ(parts(",a,,b,"), (Parts{"", "a", "", "b"}));
}

}  // namespace
}  // namespace idem::test
