#include "core/stored_response_codec.hpp"
#include "store_conformance/harness.hpp"

#include <random>

namespace idem::test {
namespace {

TEST(StoredFields, T30_come_back_as_they_were) {
  const std::vector<Field> fields{
      {"A", "1"}, {"a", ""}, {"", std::string("\0\r\n", 3)}, {"A", "2"}};
  const auto decoded = decode_fields(encode_fields(fields));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, fields);
  EXPECT_TRUE(decode_fields(encode_fields({}))->empty());
}

TEST(StoredFields, T30_cut_anywhere_are_refused_or_a_shorter_list) {
  const std::string bytes = encode_fields({{"Name", "value"}, {"Other", "thing"}});
  int shorter = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    if (decode_fields(bytes.substr(0, size))) ++shorter;
  }
  EXPECT_EQ(shorter, 2) << "only where a field ends";
}

TEST(StoredFields, T30_of_another_version_are_refused) {
  std::string bytes = encode_fields({{"A", "1"}});
  bytes[0] = static_cast<char>(stored_fields_version + 1);
  EXPECT_FALSE(decode_fields(bytes));
  EXPECT_FALSE(decode_fields(""));
}

TEST(StoredFields, T30_any_bytes_are_decoded_or_refused) {
  std::mt19937_64 random(30);
  const std::string sound = encode_fields({{"Content-Type", "text/plain"}, {"Location", "/1"}});
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = sound;
    for (std::uint64_t flips = random() % 4; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % (bytes.size() + 4), '\xff');
    (void)decode_fields(bytes);  // Address and undefined-behaviour sanitizers are the judges.
  }
}

}  // namespace
}  // namespace idem::test
