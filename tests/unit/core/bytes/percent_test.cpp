#include "core/bytes/percent.hpp"

#include <gtest/gtest.h>

namespace idem::test {
namespace {

TEST(Percent, all_bytes_come_back) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(percent_decoded(percent_encoded(all)), all);
  EXPECT_EQ(percent_encoded("aZ09-._~ /%+\xFF"), "aZ09-._~%20%2F%25%2B%FF");
  EXPECT_EQ(percent_encoded("a b/", [](char c) { return c == '/'; }), "%61%20%62/");
}

TEST(Percent, a_broken_escape_is_refused_or_stays) {
  const auto lenient = [](std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) out += decoded_at(text, at, Plus::is_blank);
    return out;
  };
  for (const std::string_view text : {"%", "a%4", "%4g", "%g4", "%%41", "%+1", "% 1"}) {
    EXPECT_FALSE(percent_decoded(text)) << text;
  }
  EXPECT_EQ(lenient("%"), "%");
  EXPECT_EQ(lenient("%4g%%41"), "%4g%A");
  EXPECT_EQ(lenient("%2b+%2B"), "+ +");
}

TEST(Percent, a_plus_is_a_blank_in_forms_only) {
  EXPECT_EQ(percent_decoded("a+%20"), "a+ ");
  EXPECT_EQ(percent_decoded("a+%20", Plus::is_blank), "a  ");
}

}  // namespace
}  // namespace idem::test
