#include "core/bytes/hex.hpp"

#include <gtest/gtest.h>

namespace idem::test {
namespace {

TEST(Hex, bytes_come_back_from_their_one_spelling) {
  std::array<std::uint8_t, 256> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  const std::string text = hex_of({reinterpret_cast<const char*>(all.data()), all.size()});
  EXPECT_EQ(text, to_hex(all));
  EXPECT_EQ(from_hex<256>(text), all);
  std::string capital = "0x";
  append_hex(capital, "\x0A\xFF", capital_hex_digits);
  EXPECT_EQ(capital, "0x0AFF");
}

TEST(Hex, other_texts_have_no_bytes) {
  EXPECT_TRUE(from_hex<2>("0aff"));
  for (const std::string_view text :
       {"", "0af", "0aff0", "0aff00", "0AFF", "0afg", "+aff", "0x0a", " aff"}) {
    EXPECT_FALSE(from_hex<2>(text)) << text;
  }
}

TEST(Hex, a_handle_names_a_record_in_lower_case_only) {
  const std::string text = "00112233445566778899aabbccddeeff";
  const auto id = parse_handle(text);
  ASSERT_TRUE(id);
  EXPECT_EQ(to_hex(id->bytes), text);
  EXPECT_FALSE(parse_handle(upper_case(text)));
  EXPECT_FALSE(parse_handle(text + "00"));
}

}  // namespace
}  // namespace idem::test
