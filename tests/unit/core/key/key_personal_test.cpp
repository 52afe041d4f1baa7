#include <gtest/gtest.h>
#include <idem/key.hpp>

#include <random>

namespace idem::test {
namespace {

TEST(KeyPersonal, email_addresses_are_seen) {
  for (const auto* key : {"jane@example.com", "order-jane.doe+x@mail.example.co.uk-17", "a@b.cd",
                          "user:jane@example.com:1"}) {
    EXPECT_EQ(looks_like(key), PersonalData::email) << key;
  }
  for (const auto* key : {"@example.com", "a@b", "a@b.c", "a@1.2", "a@ b.cd", "v1@2", "@", "a@",
                          "checkout@3.14.15"}) {
    EXPECT_EQ(looks_like(key), PersonalData::none) << key;
  }
}

TEST(KeyPersonal, card_numbers_are_seen) {
  for (const auto* key :
       {"4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "pay:5555555555554444",
        "378282246310005", "6011111111111117 ", "30569309025904", "3530111333300000"}) {
    EXPECT_EQ(looks_like(key), PersonalData::card) << key;
  }
  for (const auto* key : {"4111111111111112",      // Its check digit is wrong.
                          "1700000000000",         // A time in milliseconds.
                          "41111111111111111111",  // Too long.
                          "x4111111111111111", "4111111111111111x", "4111  1111 1111 1111"}) {
    EXPECT_EQ(looks_like(key), PersonalData::none) << key;
  }
}

TEST(KeyPersonal, phone_numbers_are_seen) {
  for (const auto* key : {"+14155550123", "+49 30 901820", "call:+44-20-7946-0018", "212-555-0123",
                          "(212) 555-0123", "212.555.0123"}) {
    EXPECT_EQ(looks_like(key), PersonalData::phone) << key;
  }
  for (const auto* key : {"+123456", "+1234567890123456", "1+14155550123", "212-555-01234",
                          "2125550123", "212-5555-0123", "2024-01-31-0001", "20240131-555-0123"}) {
    EXPECT_EQ(looks_like(key), PersonalData::none) << key;
  }
}

TEST(KeyPersonal, random_uuids_and_ulids_are_not) {
  const unsigned seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937_64 random(seed);
  static constexpr std::string_view hex = "0123456789abcdef";
  static constexpr std::string_view digits = "0123456789";
  for (int i = 0; i < 20'000; ++i) {
    const auto& alphabet = i % 2 == 0 ? hex : digits;
    std::string uuid;
    for (int at = 0; at < 36; ++at) {
      const bool dash = at == 8 || at == 13 || at == 18 || at == 23;
      uuid += dash ? '-' : alphabet[random() % alphabet.size()];
    }
    ASSERT_EQ(looks_like(uuid), PersonalData::none) << uuid << " seed " << seed;
  }
  EXPECT_EQ(looks_like("01ARZ3NDEKTSV4RRFFQ69G5FAV"), PersonalData::none);
}

TEST(KeyPersonal, are_refused_only_where_that_is_asked) {
  const std::string_view lines[] = {"\"4111 1111 1111 1111\""};
  EXPECT_TRUE(parse_key(lines, {}).has_value());
  const auto refused = parse_key(lines, {.reject_pii = true});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, KeyError::Code::personal);
  EXPECT_EQ(refused.error().detail.find("4111"), std::string::npos);
}

}  // namespace
}  // namespace idem::test
