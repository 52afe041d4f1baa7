// json::parse: kinds of numbers, order, refusals. What it accepts is compared with another reader
// in second_reader_test.cpp.
#include "json/value.hpp"

#include <idem/json.hpp>
#include <idem/limits.hpp>

#include "unit/core/json/refusal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace idem {
namespace {

using json::Array;
using json::Object;
using json::Value;

template <class T>
bool is(std::string_view text, const T& wanted) {
  const auto value = json::parse(text);
  const T* const found = value ? std::get_if<T>(&value->is) : nullptr;
  return found != nullptr && *found == wanted;
}

// The error and its place, which are those of canonicalize().
Refusal parse_refusal(std::string_view text) {
  const auto value = json::parse(text);
  const auto form = canonicalize(text);
  if (value) return {"accepted", 0};
  EXPECT_FALSE(form);
  EXPECT_TRUE(form || form.error().what == value.error().what) << text.substr(0, 100);
  EXPECT_TRUE(form || form.error().offset == value.error().offset) << text.substr(0, 100);
  return {value.error().what, value.error().offset};
}

TEST(JsonValue, S10_whole_numbers_are_exact_as_far_as_they_fit) {
  EXPECT_TRUE(is("0", std::int64_t{0}));
  EXPECT_TRUE(is("-0", std::int64_t{0}));
  EXPECT_TRUE(is("-1", std::int64_t{-1}));
  EXPECT_TRUE(is("9007199254740993", std::int64_t{9'007'199'254'740'993}));
  EXPECT_TRUE(is("9223372036854775807", std::numeric_limits<std::int64_t>::max()));
  EXPECT_TRUE(is("-9223372036854775808", std::numeric_limits<std::int64_t>::min()));
  EXPECT_TRUE(is("9223372036854775808", std::uint64_t{9'223'372'036'854'775'808U}));
  EXPECT_TRUE(is("18446744073709551615", std::numeric_limits<std::uint64_t>::max()));
  EXPECT_TRUE(is("18446744073709551616", 18446744073709551616.0));
  EXPECT_TRUE(is("-9223372036854775809", -9223372036854775809.0));
  EXPECT_TRUE(is("1" + std::string(308, '0'), 1e308));
}

TEST(JsonValue, S10_a_fraction_or_an_exponent_makes_a_double) {
  EXPECT_TRUE(is("1.0", 1.0));
  EXPECT_TRUE(is("1e2", 100.0));
  EXPECT_TRUE(is("1E+0", 1.0));
  EXPECT_TRUE(is("-0.0", 0.0));
  EXPECT_TRUE(std::signbit(std::get<double>(json::parse("-0.0")->is)));
  EXPECT_TRUE(std::signbit(std::get<double>(json::parse("-0e5")->is)));
  EXPECT_FALSE(std::signbit(std::get<double>(json::parse("0e5")->is)));
}

TEST(JsonValue, S10_a_double_is_the_nearest_one) {
  EXPECT_TRUE(is("0.1", 0.1));
  EXPECT_TRUE(is("2.2250738585072014e-308", 2.2250738585072014e-308));
  EXPECT_TRUE(is("4.9406564584124654e-324", 4.9406564584124654e-324));
  EXPECT_TRUE(is("1.7976931348623157e308", std::numeric_limits<double>::max()));
  // Halfway between two doubles, and the least beyond it.
  EXPECT_TRUE(is("9007199254740993.0", 9007199254740992.0));
  EXPECT_TRUE(is("9007199254740993." + std::string(800, '0') + "1", 9007199254740994.0));
}

TEST(JsonValue, S10_a_number_that_underflows_is_a_zero_and_one_that_overflows_is_refused) {
  EXPECT_TRUE(is("1e-400", 0.0));
  EXPECT_TRUE(std::signbit(std::get<double>(json::parse("-1e-400")->is)));
  EXPECT_TRUE(is("1e-" + std::string(100, '9'), 0.0));
  EXPECT_TRUE(is("0e" + std::string(100, '9'), 0.0));
  EXPECT_EQ(parse_refusal("[1e309]"), Refusal("number overflows a double", 1));
  EXPECT_EQ(parse_refusal("[0,-1e" + std::string(100, '9') + "]"),
            Refusal("number overflows a double", 3));
  EXPECT_EQ(parse_refusal(std::string(400, '9')), Refusal("number overflows a double", 0));
}

TEST(JsonValue, S10_strings_are_decoded) {
  EXPECT_TRUE(is(R"("")", std::string()));
  EXPECT_TRUE(is(R"("plain, and long enough for memory of its own")",
                 std::string("plain, and long enough for memory of its own")));
  EXPECT_TRUE(is(R"("a\u0000\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00z")",
                 std::string("a\0\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80z", 17)));
}

TEST(JsonValue, S10_containers_keep_the_order_of_the_text) {
  const auto value =
      json::parse(R"( {"z":[1,[],{"a":null},true] , "":{}, "\u0062":false,"a":"x"} )");
  ASSERT_TRUE(value);
  const auto& members = std::get<Object>(value->is);
  ASSERT_EQ(members.size(), 4U);
  EXPECT_EQ(members[0].name, "z");
  EXPECT_EQ(members[1].name, "");
  EXPECT_EQ(members[2].name, "b");
  EXPECT_EQ(members[3].name, "a");
  const auto& items = std::get<Array>(members[0].value.is);
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(std::get<std::int64_t>(items[0].is), 1);
  EXPECT_TRUE(std::get<Array>(items[1].is).empty());
  ASSERT_NE(items[2].find("a"), nullptr);
  EXPECT_TRUE(std::holds_alternative<std::nullptr_t>(items[2].find("a")->is));
  EXPECT_TRUE(std::get<bool>(items[3].is));
  EXPECT_TRUE(std::get<Object>(members[1].value.is).empty());
  EXPECT_FALSE(std::get<bool>(value->find("b")->is));
  EXPECT_EQ(std::get<std::string>(value->find("a")->is), "x");
  EXPECT_EQ(value->find("A"), nullptr);
}

// The containers around the innermost one must not move while it grows, and each grows many times.
TEST(JsonValue, S10_containers_grow_at_every_depth) {
  const std::string inner = "[" + repeated("0,", 99) + "0]";
  const std::string around = "{\"a\":" + inner + ",\"b\":" + inner + ",\"c\":[" +
                             repeated(inner + ",", 40) + inner + "],\"d\":7}";
  const auto value = json::parse("[" + repeated(around + ",", 40) + around + "]");
  ASSERT_TRUE(value);
  const auto& items = std::get<Array>(value->is);
  ASSERT_EQ(items.size(), 41U);
  for (const Value& item : items) {
    EXPECT_EQ(std::get<Array>(item.find("b")->is).size(), 100U);
    const auto& rows = std::get<Array>(item.find("c")->is);
    ASSERT_EQ(rows.size(), 41U);
    for (const Value& row : rows) EXPECT_EQ(std::get<Array>(row.is).size(), 100U);
    EXPECT_EQ(std::get<std::int64_t>(item.find("d")->is), 7);
  }
}

TEST(JsonValue, T44_duplicate_names_are_refused_however_they_are_spelled) {
  EXPECT_EQ(parse_refusal(R"({"a":1,"a":1})"), Refusal("duplicate name", 7));
  EXPECT_EQ(parse_refusal(R"({"a":1,"b":2,"\u0061":3})"), Refusal("duplicate name", 13));
  EXPECT_EQ(parse_refusal(R"([{"x":{"\n":1,"c":0,"\u000A":1}}])"), Refusal("duplicate name", 20));
  EXPECT_EQ(parse_refusal(R"({"":1,"":2})"), Refusal("duplicate name", 6));
  EXPECT_TRUE(json::parse(R"([{"a":1},{"a":1,"A":{"a":1}}])"));
}

TEST(JsonValue, T39_a_hundred_thousand_members_are_compared_without_a_square) {
  std::string text = "{";
  for (int i = 199'999; i >= 100'000; --i) {
    text += (text.size() > 1 ? ",\"" : "\"") + std::to_string(i) + "\":" + std::to_string(i);
  }
  const auto value = json::parse(text + "}");
  ASSERT_TRUE(value);
  const auto& members = std::get<Object>(value->is);
  ASSERT_EQ(members.size(), 100'000U);
  EXPECT_EQ(members.front().name, "199999");
  EXPECT_EQ(std::get<std::int64_t>(members.back().value.is), 100'000);
  EXPECT_EQ(parse_refusal(text + ",\"150000\":0}"), Refusal("duplicate name", text.size() + 1));
  EXPECT_EQ(parse_refusal("{" + repeated("\"name\":1,", 99'999) + "\"name\":1}").first,
            "duplicate name");
}

TEST(JsonValue, T39_depth_ends_at_the_limit_or_at_a_smaller_one) {
  const std::size_t depth = limits::json_depth_max;
  const std::string arrays = repeated("[", depth) + repeated("]", depth);
  const std::string objects = repeated("{\"a\":", depth) + "1" + repeated("}", depth);
  EXPECT_TRUE(json::parse(arrays));
  EXPECT_TRUE(json::parse(objects));
  EXPECT_EQ(parse_refusal("[" + arrays + "]"), Refusal("nested too deeply", depth));
  EXPECT_EQ(parse_refusal("{\"a\":" + objects + "}"), Refusal("nested too deeply", depth * 5));
  EXPECT_EQ(parse_refusal(std::string(100'000, '[')), Refusal("nested too deeply", depth));
  EXPECT_TRUE(json::parse("[[{}]]", 3));
  EXPECT_EQ(json::parse("[[{}]]", 2).error().offset, 2U);
  EXPECT_TRUE(json::parse("1", 0));
  EXPECT_FALSE(json::parse("[]", 0));
}

TEST(JsonValue, S10_a_refusal_names_its_place) {
  for (const std::string_view wrong : {"",
                                       " ",
                                       "[1",
                                       "[1,]",
                                       "[,1]",
                                       "[1 2]",
                                       "[1}",
                                       "{\"a\":1]",
                                       "{\"a\":1,}",
                                       "{\"a\"}",
                                       "{\"a\" ",
                                       "{a:1}",
                                       "1 2",
                                       "{} }",
                                       "]",
                                       "nul",
                                       "truefalse",
                                       "[01]",
                                       "[-]",
                                       "[1.]",
                                       "[1e]",
                                       "\"abc",
                                       "\"a\nb\"",
                                       R"("a\x41")",
                                       R"("a\u00g1")",
                                       R"(["\ud800"])",
                                       "[\"\xff\"]",
                                       "\xef\xbb\xbf{}",
                                       R"({"a":[1,{"b":2,"b":3}]})"}) {
    EXPECT_NE(parse_refusal(wrong).first, "accepted") << wrong;
  }
  // Of several faults the first one that is met; a name's twin is met at the end of its object.
  EXPECT_EQ(parse_refusal(R"({"a":1,"a":1,nul})"), Refusal("not a name", 13));
}

}  // namespace
}  // namespace idem
