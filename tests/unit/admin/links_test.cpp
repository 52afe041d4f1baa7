#include "admin/links.hpp"

#include <gtest/gtest.h>

namespace idem::admin {
namespace {

TEST(Links, a_value_is_encoded_where_its_place_is) {
  constexpr auto place = Links::upstream_place;
  EXPECT_EQ(filled("https://pay.internal/{reference}?x=1", place, "ch_1"),
            "https://pay.internal/ch_1?x=1");
  EXPECT_EQ(filled("https://pay.internal/{reference}", place, "../a b?c#\"<"),
            "https://pay.internal/..%2Fa%20b%3Fc%23%22%3C");
}

TEST(Links, without_an_address_or_a_value_there_is_none) {
  EXPECT_EQ(filled("", Links::trace_place, "00"), std::nullopt);
  EXPECT_EQ(filled("https://traces.internal/{trace_id}", Links::trace_place, ""), std::nullopt);
}

}  // namespace
}  // namespace idem::admin
