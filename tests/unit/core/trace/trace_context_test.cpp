#include "core/trace/trace_context.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace idem {
namespace {

const std::string example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContext, reads_and_writes_version_00) {
  const auto context = parse_traceparent(example);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace.bytes[0], 0x4b);
  EXPECT_EQ(context->trace.bytes[15], 0x36);
  EXPECT_EQ(context->span.bytes[7], 0xb7);
  EXPECT_TRUE(context->is_sampled);
  EXPECT_EQ(traceparent_of(*context), example);
}

TEST(TraceContext, the_last_bit_of_the_flags_says_whether_it_is_recorded) {
  const std::string ids = example.substr(0, 53);
  for (const auto& [flags, is_sampled] :
       {std::pair{"00", false}, {"01", true}, {"02", false}, {"03", true}, {"fe", false}}) {
    const auto context = parse_traceparent(ids + flags);
    ASSERT_TRUE(context) << flags;
    EXPECT_EQ(context->is_sampled, is_sampled) << flags;
    EXPECT_EQ(traceparent_of(*context), ids + (is_sampled ? "01" : "00"))
        << "other flags are reset";
  }
}

// §3.2.2 and §4.3 of the recommendation, rule by rule.
TEST(TraceContext, refuses_what_the_recommendation_refuses) {
  const auto changed = [](std::size_t at, std::string_view text) {
    std::string value = example;
    return value.replace(at, text.size(), text);
  };
  for (const std::string& value :
       {std::string(), example.substr(0, 54), example + "0", example + "-", changed(0, "ff"),
        changed(0, "0g"), changed(3, "4B"), changed(36, "00F0"), changed(2, "_"), changed(35, "_"),
        changed(52, "_"), changed(53, "0x"), changed(53, "0A"), changed(3, std::string(32, '0')),
        changed(36, std::string(16, '0')), " " + example, changed(0, "01") + "x"}) {
    EXPECT_FALSE(parse_traceparent(value)) << '"' << value << '"';
  }
}

TEST(TraceContext, reads_the_known_part_of_a_later_version) {
  const auto later = "cc" + example.substr(2);
  EXPECT_TRUE(parse_traceparent(later));
  const auto context = parse_traceparent(later + "-what-the-future-will-be-like");
  ASSERT_TRUE(context);
  EXPECT_EQ(traceparent_of(*context), example) << "it goes on in our version";
}

TEST(TraceContext, a_ratio_decides_by_the_random_part_of_the_id) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr int ids = 40'000;
  int among = 0;
  for (int i = 0; i < ids; ++i) {
    TraceId id;
    for (auto& byte : id.bytes) byte = static_cast<std::uint8_t>(random());
    among += is_among(id, 10) ? 1 : 0;
    EXPECT_TRUE(is_among(id, 1));
    TraceId same_end = id;
    same_end.bytes[0] ^= 0xff;
    same_end.bytes[8] ^= 0xff;
    EXPECT_EQ(is_among(id, 10), is_among(same_end, 10));
  }
  // Ten standard deviations.
  EXPECT_NEAR(among, ids / 10, 600);
}

}  // namespace
}  // namespace idem
