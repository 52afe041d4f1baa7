// Protocol §10: what an encoded body holds, as one reading that no other decoder contradicts.
#include "coding/decoded.hpp"
#include "support/gzip.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace idem {
namespace {

using test::gzipped;

const std::string pay = R"({"amount":1250,"currency":"eur"})";
const std::string pay_in_brotli =
    "\x8b\x0f\x80\x7b\x22\x61\x6d\x6f\x75\x6e\x74\x22\x3a\x31\x32\x35\x30\x2c\x22\x63\x75\x72\x72"
    "\x65\x6e\x63\x79\x22\x3a\x22\x65\x75\x72\x22\x7d\x03";

constexpr std::size_t no_limit = 1UL << 20;

std::string held(Coding coding, std::string_view body, std::size_t most = no_limit) {
  const auto content = decoded(coding, body, most);
  if (content) return *content;
  return content.error() == NotDecoded::too_large ? "too large" : "malformed";
}

struct Encoded {
  Coding coding;
  std::string body;
};

std::vector<Encoded> all_of(std::string_view content) {
  std::vector<Encoded> all{{Coding::gzip, gzipped(content)},
                           {Coding::deflate, gzipped(content, 0, 15)}};
  if (content == pay) all.push_back({Coding::br, pay_in_brotli});
  return all;
}

TEST(Decoded, S10_each_coding_gives_the_content) {
  for (const auto& [coding, body] : all_of(pay)) EXPECT_EQ(held(coding, body), pay);
  for (const auto& [coding, body] : all_of("")) EXPECT_EQ(held(coding, body), "");
  const std::string large(300'000, 'x');
  for (const auto& [coding, body] : all_of(large)) EXPECT_EQ(held(coding, body), large);
  EXPECT_NE(gzipped(pay, 1), gzipped(pay, 2));
  EXPECT_EQ(held(Coding::gzip, gzipped(pay, 1)), held(Coding::gzip, gzipped(pay, 2)));
}

TEST(Decoded, S10_the_names_are_those_of_content_encoding) {
  EXPECT_EQ(coding_of("gzip"), Coding::gzip);
  EXPECT_EQ(coding_of("x-gzip"), Coding::gzip);
  EXPECT_EQ(coding_of("deflate"), Coding::deflate);
  EXPECT_EQ(coding_of("br"), Coding::br);
  for (const std::string_view none : {"", "zstd", "identity", "gzip,gzip", "GZIP", "compress"}) {
    EXPECT_EQ(coding_of(none), std::nullopt) << none;
  }
}

// One decoder reads the first member, another all of them, and a third refuses.
TEST(Decoded, S10_nothing_may_stand_behind_the_end) {
  for (const auto& [coding, body] : all_of(pay)) {
    EXPECT_EQ(held(coding, body + "x"), "malformed");
    EXPECT_EQ(held(coding, body + std::string(1, '\0')), "malformed");
    EXPECT_EQ(held(coding, body + body), "malformed");
  }
}

TEST(Decoded, S10_a_body_that_is_cut_or_changed_is_malformed) {
  for (const auto& [coding, body] : all_of(pay)) {
    for (std::size_t size = 0; size < body.size(); ++size) {
      EXPECT_EQ(held(coding, body.substr(0, size)), "malformed") << size;
    }
  }
  for (const auto& [coding, body] : all_of(pay)) {
    if (coding == Coding::br) continue;  // It has no checksum.
    for (std::size_t at = coding == Coding::gzip ? 10 : 0; at < body.size(); ++at) {
      std::string changed = body;
      changed[at] = static_cast<char>(changed[at] ^ 0x40);
      // The last byte of the data has bits that mean nothing.
      const std::string content = held(coding, changed);
      EXPECT_TRUE(content == "malformed" || content == pay) << at << ": " << content;
    }
  }
  EXPECT_EQ(held(Coding::gzip, gzipped(pay, 0, 15)), "malformed") << "another format";
  EXPECT_EQ(held(Coding::deflate, gzipped(pay)), "malformed");
  EXPECT_EQ(held(Coding::deflate, gzipped(pay, 0, -15)), "malformed") << "without its header";
  EXPECT_EQ(held(Coding::deflate, "\x78\xbb\x01\x02\x03\x04"), "malformed") << "a dictionary";
  EXPECT_EQ(held(Coding::gzip, pay), "malformed");
}

TEST(Decoded, S10_the_bound_counts_decoded_bytes) {
  for (const auto& [coding, body] : all_of(pay)) {
    EXPECT_EQ(held(coding, body, pay.size()), pay);
    EXPECT_EQ(held(coding, body, pay.size() - 1), "too large");
    EXPECT_EQ(held(coding, body, 0), "too large");
  }
  const std::string bomb = gzipped(std::string(64UL << 20, '\0'));
  ASSERT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(held(Coding::gzip, bomb), "too large");
}

}  // namespace
}  // namespace idem
