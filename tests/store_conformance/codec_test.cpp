#include "core/record/stored_response_codec.hpp"
#include "store_conformance/harness.hpp"

#include <random>

namespace idem::test {
namespace {

std::string encoded(const StoredResponse& response) {
  std::string bytes = "what was there before";
  encode_answer(response, bytes);
  return bytes;
}

StoredResponse with_fields(std::vector<Field> fields) { return {201, std::move(fields), {}, true}; }

TEST(StoredAnswer, T30_comes_back_as_it_was_but_for_its_body) {
  StoredResponse response =
      with_fields({{"A", "1"}, {"a", ""}, {"", std::string("\0\r\n", 3)}, {"A", "2"}});
  response.body = "kept elsewhere";
  const auto decoded = decode_answer(encoded(response));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->headers, response.headers);
  EXPECT_EQ(decoded->status, 201);
  EXPECT_TRUE(decoded->body_stored);
  EXPECT_TRUE(decoded->body.empty());
  for (const int status : {100, 999}) {
    const StoredResponse plain{status, {}, {}, false};
    EXPECT_EQ(decode_answer(encoded(plain)), plain);
  }
}

TEST(StoredAnswer, S02_a_listing_reads_the_status_alone) {
  StoredResponse response = with_fields({{"Name", "value"}});
  const std::string bytes = encoded(response);
  response.headers.clear();
  EXPECT_EQ(decode_status(bytes), response);
  EXPECT_EQ(decode_status(bytes.substr(0, bytes.size() - 1)), response);
  EXPECT_FALSE(decode_status(bytes.substr(0, 3)));
}

TEST(StoredAnswer, T30_cut_anywhere_is_refused_or_a_shorter_list) {
  const std::string bytes = encoded(with_fields({{"Name", "value"}, {"Other", "thing"}}));
  int shorter = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    if (decode_answer(bytes.substr(0, size))) ++shorter;
  }
  EXPECT_EQ(shorter, 2) << "only where a field ends";
}

TEST(StoredAnswer, T30_another_version_or_a_form_that_we_do_not_write_is_refused) {
  const std::string sound = encoded(with_fields({{"A", "1"}}));
  const auto with = [&](std::size_t at, int byte) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(byte);
    return bytes;
  };
  EXPECT_TRUE(decode_answer(sound));
  EXPECT_FALSE(decode_answer(with(0, stored_answer_version + 1)));
  EXPECT_FALSE(decode_answer(with(0, 0)));
  EXPECT_FALSE(decode_answer(with(1, 0).replace(2, 1, 1, '\0'))) << "status 0";
  EXPECT_FALSE(decode_answer(with(2, 0xff))) << "status above 999";
  EXPECT_FALSE(decode_answer(with(3, 2))) << "body_stored is 0 or 1";
  EXPECT_FALSE(decode_answer(""));
}

TEST(StoredAnswer, T30_any_bytes_are_decoded_or_refused) {
  std::mt19937_64 random(30);
  const std::string sound =
      encoded(with_fields({{"Content-Type", "text/plain"}, {"Location", "/1"}}));
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = sound;
    for (std::uint64_t flips = random() % 4; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % (bytes.size() + 4), '\xff');
    (void)decode_answer(bytes);  // Address and undefined-behaviour sanitizers are the judges.
  }
}

}  // namespace
}  // namespace idem::test
