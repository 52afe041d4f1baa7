#include "core/bytes/json_string.hpp"

#include "core/json/string.hpp"

#include <gtest/gtest.h>

namespace idem::test {
namespace {

TEST(JsonString, the_escapes_are_the_canonical_ones) {
  EXPECT_EQ(json_string(""), R"("")");
  EXPECT_EQ(json_string("\b\t\n\f\r\"\\"), R"("\b\t\n\f\r\"\\")");
  EXPECT_EQ(json_string(std::string_view("\0\x1F\x7F/\u00e9", 6)), "\"\\u0000\\u001f\x7F/\u00e9\"");
}

TEST(JsonString, every_character_comes_back) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  const std::string text = json_string(all);
  const auto literal = scan_string(text, 0);
  ASSERT_TRUE(literal);
  std::string read;
  ASSERT_TRUE(decode_string(text, *literal, read));
  EXPECT_EQ(read, all);
}

}  // namespace
}  // namespace idem::test
