#include "core/bytes/base64.hpp"

#include <gtest/gtest.h>

#include <random>

namespace idem::test {
namespace {

TEST(Base64, agrees_with_the_examples_of_rfc4648) {
  const std::pair<std::string_view, std::string_view> cases[] = {{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, bytes_come_back_and_other_spellings_are_refused) {
  std::mt19937 random(17);
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes(size, '\0');
    for (auto& c : bytes) c = static_cast<char>(random());
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
  for (const auto* text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "====", "Zm9v=", "Zm 9v",
                           "Zm9-", "=Zg=", "Zm9v\n"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

TEST(Base64, the_kind_of_urls_has_no_padding_and_two_other_digits) {
  EXPECT_EQ(from_base64url(""), "");
  EXPECT_EQ(from_base64url("Zg"), "f");
  EXPECT_EQ(from_base64url("Zm8"), "fo");
  EXPECT_EQ(from_base64url("-_-_"), from_base64("+/+/"));
  for (const auto* text : {"Z", "Zh", "Zm9", "Zg==", "+/+/", "Zm9vZ", "Zm 9", "Zm9v\n"}) {
    EXPECT_FALSE(from_base64url(text)) << text;
  }
}

}  // namespace
}  // namespace idem::test
