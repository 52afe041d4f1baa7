#include "core/json/differences.hpp"

#include <idem/json.hpp>

#include <gtest/gtest.h>

namespace idem {
namespace {

std::string form_of(std::string_view text) { return fingerprint_form(text).value(); }

std::string shown(
    std::string_view before, std::string_view after, std::size_t most = 10,
    const std::function<bool(const std::string&)>& counts = [](const auto&) { return true; }) {
  std::string all;
  for (const auto& one : json_differences(form_of(before), form_of(after), most, counts)) {
    all += one.pointer + ": " + one.before + " -> " + one.after + "\n";
  }
  return all;
}

TEST(JsonDifferences, names_the_deepest_places_and_shows_no_value) {
  EXPECT_EQ(shown(R"({"a":1,"b":{"c":"secret","d":[1,2]}})",
                  R"({"b":{"d":[1,3,true],"c":"other!"},"a":1.0,"e":null})"),
            "/b/c: string, 6 characters -> string, 6 characters\n"
            "/b/d/1: number -> number\n"
            "/b/d/2: absent -> boolean\n"
            "/e: absent -> null\n");
}

TEST(JsonDifferences, of_two_kinds_are_one) {
  EXPECT_EQ(shown(R"({"a":{"b":1,"c":2}})", R"({"a":[1]})"),
            "/a: object, 2 members -> array, 1 item\n");
  EXPECT_EQ(shown("1", R"("1")"), ": number -> string, 1 character\n");
}

TEST(JsonDifferences, of_spelling_are_none) {
  EXPECT_EQ(shown(R"({"b":1e1,"a":"\u0041"})", R"({ "a": "A", "b": 10 })"), "");
}

TEST(JsonDifferences, numbers_beyond_a_double_are_numbers) {
  EXPECT_EQ(
      shown(R"({"a":12345678901234567890.10,"b":1})", R"({"a":12345678901234567890.20,"b":2})"),
      "/a: number -> number\n/b: number -> number\n");
}

TEST(JsonDifferences, pointers_are_escaped_and_characters_counted) {
  EXPECT_EQ(shown(R"({"a/b":{"~":"é€"}})", R"({"a/b":{"~":""}})"),
            "/a~1b/~0: string, 2 characters -> string, 0 characters\n");
}

TEST(JsonDifferences, that_do_not_count_are_left_out_and_the_number_is_bounded) {
  const auto counts = [](const std::string& pointer) { return pointer != "/a"; };
  EXPECT_EQ(shown(R"({"a":{"x":1},"b":1,"c":1})", R"({"a":{"x":2},"b":2,"c":2})", 1, counts),
            "/b: number -> number\n");
}

TEST(WithoutEachMember, gives_the_document_once_for_each_member) {
  const std::string text = form_of(R"({"b":{"x":[1]},"a":"1","c":null})");
  const auto all = without_each_member(text, 3);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].pointer, "/a");
  EXPECT_EQ(all[0].text, R"({"b":{"x":[1]},"c":null})");
  EXPECT_EQ(all[1].value, R"({"x":[1]})");
  EXPECT_EQ(all[2].text, R"({"a":"1","b":{"x":[1]}})");
  EXPECT_TRUE(without_each_member(text, 2).empty());
  EXPECT_TRUE(without_each_member("[1]", 2).empty());
  EXPECT_EQ(without_each_member(R"({"a":1})", 1).at(0).text, "{}");
}

}  // namespace
}  // namespace idem
