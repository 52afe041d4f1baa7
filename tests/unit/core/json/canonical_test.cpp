// RFC 8785 as a whole: names, strings, order, refusals; numbers are in number_test.cpp.
#include <idem/json.hpp>
#include <idem/limits.hpp>

#include "support/external_data.hpp"
#include "support/json.hpp"
#include "unit/core/json/refusal.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace idem {
namespace {

std::string canonical(std::string_view text) {
  const auto form = canonicalize(text);
  return form ? *form : "refused: " + std::string(form.error().what);
}

// The error and its place; both forms must agree on everything but numbers.
Refusal refusal(std::string_view text) {
  const auto form = canonicalize(text);
  const auto fingerprint = fingerprint_form(text);
  EXPECT_FALSE(fingerprint.has_value());
  if (form) return {"accepted", 0};
  EXPECT_TRUE(fingerprint || fingerprint.error().what == form.error().what);
  EXPECT_TRUE(fingerprint || fingerprint.error().offset == form.error().offset);
  return {form.error().what, form.error().offset};
}

TEST(Json, S10_the_jcs_examples_come_out_byte_for_byte) {
  IDEM_NEED_EXTERNAL(data);
  const auto folder = data / "jcs" / "testdata";
  int count = 0;
  for (const auto& input : std::filesystem::directory_iterator(folder / "input")) {
    SCOPED_TRACE(input.path().filename().string());
    const std::string form = canonical(test::read_file(input.path()));
    EXPECT_EQ(form, test::read_file(folder / "output" / input.path().filename()));
    std::string bytes;
    std::istringstream hex(
        test::read_file(folder / "outhex" / input.path().filename().replace_extension(".txt")));
    for (std::string byte; hex >> byte;) bytes += static_cast<char>(std::stoi(byte, nullptr, 16));
    EXPECT_EQ(form, bytes);
    ++count;
  }
  EXPECT_GE(count, 4);
}

TEST(Json, S10_judges_the_parsing_suite_as_rfc_8259_does) {
  IDEM_NEED_EXTERNAL(data);
  int yes = 0;
  int no = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(data / "JSONTestSuite/test_parsing")) {
    const std::string name = file.path().filename();
    SCOPED_TRACE(name);
    const std::string text = test::read_file(file.path());
    const auto form = canonicalize(text);
    const auto fingerprint = fingerprint_form(text);
    if (form) {
      EXPECT_EQ(canonical(*form), *form);
    }
    if (name.starts_with("y_") && name.find("duplicated_key") != name.npos) {
      ASSERT_FALSE(form || fingerprint);
      EXPECT_EQ(form.error().what, "duplicate name");
      ++yes;
    } else if (name.starts_with("y_")) {
      EXPECT_TRUE(form.has_value() && fingerprint.has_value());
      ++yes;
    } else if (name.starts_with("n_")) {
      EXPECT_FALSE(form.has_value() || fingerprint.has_value());
      ++no;
    }
  }
  EXPECT_GE(yes, 90);
  EXPECT_GE(no, 150);
}

TEST(Json, S10_the_open_cases_of_rfc_8259_are_settled) {
  // A number that a double cannot hold is one that it can round to; what it cannot is refused.
  EXPECT_EQ(canonical("[123.456e-789]"), "[0]");
  EXPECT_EQ(canonical("[-123123123123123123123123123123]"), "[-1.2312312312312312e+29]");
  EXPECT_EQ(canonical("[0.4e00669999999999999999999999999999999999999999999999999999999]"),
            "refused: number overflows a double");
  EXPECT_EQ(canonical("[-1e+9999]"), "refused: number overflows a double");
  EXPECT_EQ(canonical("[123e-10000000]"), "[0]");
  // Text is UTF-8 without a byte order mark; neither UTF-16 nor a lone surrogate is.
  EXPECT_FALSE(canonicalize("\xef\xbb\xbf{}").has_value());
  EXPECT_FALSE(canonicalize(std::string_view("[\0\"\0\xe9\0\"\0]\0", 10)).has_value());
  EXPECT_FALSE(canonicalize(R"(["\uDADA"])").has_value());
  EXPECT_EQ(refusal(repeated("[", 500) + repeated("]", 500)), Refusal("nested too deeply", 64));
}

TEST(Json, S10_white_space_goes_and_structure_stays) {
  EXPECT_EQ(canonical(" \t\r\n[ 1 , true,false , null,\"x\" , { } , [ ] ] \n"),
            R"([1,true,false,null,"x",{},[]])");
  EXPECT_EQ(canonical("\"\""), "\"\"");
  EXPECT_EQ(canonical(R"({"" : {"a":[{}]}})"), R"({"":{"a":[{}]}})");
}

TEST(Json, T43_member_order_is_no_difference_at_any_depth) {
  const std::string expected = R"({"a":{"x":[{"b":1,"c":2}],"y":{"p":1,"q":2}},"b":1})";
  EXPECT_EQ(canonical(expected), expected);
  EXPECT_EQ(canonical(R"({"b":1,"a":{"y":{"q":2,"p":1},"x":[{"c":2,"b":1}]}})"), expected);
  EXPECT_EQ(canonical(R"({"b":1,"a":{"x":[{"c":2,"b":1}],"y":{"q":2,"p":1}}})"), expected);
  EXPECT_EQ(canonical(R"({"a":{"y":{"p":1,"q":2},"x":[{"b":1,"c":2}]},"b":1})"), expected);
  EXPECT_NE(canonical("[1,2]"), canonical("[2,1]"));
}

TEST(Json, S10_names_are_ordered_by_utf_16_code_units) {
  // U+1F600 is D83D DE00 in UTF-16 and so comes before U+E000, U+FB33 and U+FFFD, but after U+D7FF.
  EXPECT_EQ(canonical("{\"\xef\xac\xb3\":1,\"\xf0\x9f\x98\x80\":2,\"\xee\x80\x80\":3,"
                      "\"\xed\x9f\xbf\":4,\"\xef\xbf\xbd\":5,\"\xf4\x8f\xbf\xbf\":6}"),
            "{\"\xed\x9f\xbf\":4,\"\xf0\x9f\x98\x80\":2,\"\xf4\x8f\xbf\xbf\":6,"
            "\"\xee\x80\x80\":3,\"\xef\xac\xb3\":1,\"\xef\xbf\xbd\":5}");
  EXPECT_EQ(canonical(R"({"ab":1,"a":2,"":3,"b":4,"A":5})"), R"({"":3,"A":5,"a":2,"ab":1,"b":4})");
  // By what a name means, not by how it is written: U+000A, U+0022 and U+005C around letters.
  EXPECT_EQ(canonical(R"({"a":1,"\\":2,"\n":3,"\"":4,"\u0041":5})"),
            R"({"\n":3,"\"":4,"A":5,"\\":2,"a":1})");
}

TEST(Json, S10_strings_are_written_with_the_fewest_escapes) {
  EXPECT_EQ(canonical(R"("\u0041\/\u00e9\u20ac\ud83d\ude00")"),
            "\"A/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  EXPECT_EQ(canonical(R"("\u0008\u0009\u000a\u000C\u000d\u0022\u005c")"), R"("\b\t\n\f\r\"\\")");
  EXPECT_EQ(canonical(R"("\u0000\u001F\u007f")"), "\"\\u0000\\u001f\x7f\"");
  EXPECT_EQ(canonical(R"("\u2028\uFFFF")"), "\"\xe2\x80\xa8\xef\xbf\xbf\"");
  EXPECT_EQ(canonical(R"("\\u0041")"), R"("\\u0041")");
}

TEST(Json, T44_duplicate_names_are_refused_however_they_are_spelled) {
  EXPECT_EQ(refusal(R"({"a":1,"a":1})"), Refusal("duplicate name", 7));
  EXPECT_EQ(refusal(R"({"a":1,"b":2,"\u0061":3})"), Refusal("duplicate name", 13));
  EXPECT_EQ(refusal(R"([{"x":{"\n":1,"c":0,"\u000A":1}}])"), Refusal("duplicate name", 20));
  EXPECT_EQ(refusal(R"({"":1,"":2})"), Refusal("duplicate name", 6));
  EXPECT_EQ(canonical(R"([{"a":1},{"a":1,"A":{"a":1}}])"), R"([{"a":1},{"A":{"a":1},"a":1}])");
}

TEST(Json, S10_text_that_is_not_utf_8_is_refused) {
  for (const std::string_view wrong : {"\x80",
                                       "\xbf",
                                       "\xc0\x80",
                                       "\xc1\xbf",
                                       "\xc3",
                                       "\xc3\x28",
                                       "\xe0\x80\x80",
                                       "\xe0\x9f\xbf",
                                       "\xe2\x82",
                                       "\xe2\x28\xa1",
                                       "\xed\xa0\x80",
                                       "\xed\xbf\xbf",
                                       "\xed\xa0\xbd\xed\xb8\x80",
                                       "\xf0\x80\x80\x80",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf0\x9f\x98",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xff",
                                       "\xfe\xff"}) {
    const std::string text(wrong);
    EXPECT_EQ(refusal("[\"ab" + text + "\"]"), Refusal("invalid UTF-8", 4));
    EXPECT_EQ(refusal("[\"" + text + "12345678\"]"), Refusal("invalid UTF-8", 2));
    EXPECT_EQ(refusal("{\"" + text + "\":1}"), Refusal("invalid UTF-8", 2));
    EXPECT_FALSE(canonicalize("[\"" + text).has_value());
    EXPECT_FALSE(canonicalize(text).has_value());
  }
  EXPECT_EQ(refusal("\xef\xbb\xbf{}"), Refusal("not a value", 0));
}

TEST(Json, S10_surrogates_without_their_other_half_are_refused) {
  for (const std::string_view wrong :
       {R"("\ud800")", R"("\udc00")", R"("\udc00\udc00")", R"("\uD83D\uD83D")", R"("\ude00\ud83d")",
        R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83d\u0041")", R"("\ud83d\ude0")"}) {
    EXPECT_EQ(refusal(wrong), Refusal("lone surrogate", 1)) << wrong;
  }
  EXPECT_EQ(refusal(R"({"\uDEAD":1})"), Refusal("lone surrogate", 2));
}

TEST(Json, S10_every_byte_is_judged_alike_at_any_place_of_a_string) {
  // Strings are read eight bytes at a time where they can be.
  for (std::size_t before = 0; before < 18; ++before) {
    for (int byte = 0; byte < 0x80; ++byte) {
      if (byte == '"' || byte == '\\') continue;
      const std::string text =
          "\"" + std::string(before, 'x') + static_cast<char>(byte) + "12345678\"";
      if (byte < 0x20) {
        EXPECT_EQ(refusal(text), Refusal("control character in a string", before + 1)) << byte;
      } else {
        EXPECT_EQ(canonical(text), text);
      }
    }
    const std::string filled(before, 'x');
    EXPECT_EQ(canonical("\"" + filled + "\""), "\"" + filled + "\"");
    EXPECT_EQ(canonical("\"" + filled + "\\u0041b\""), "\"" + filled + "Ab\"");
    EXPECT_EQ(canonical("\"" + filled + "\xc3\xa9z\""), "\"" + filled + "\xc3\xa9z\"");
  }
}

TEST(Json, S10_many_escaped_names_keep_their_values) {
  std::string backwards = "{";
  std::string forwards = "{";
  const auto add = [](std::string& text, std::string_view escape, const std::string& number) {
    if (text.size() > 1) text += ',';
    text.append("\"").append(escape).append(number).append("\":").append(number);
  };
  for (int i = 0; i < 2000; ++i) {
    add(forwards, "\\n", std::to_string(1000 + i));
    add(backwards, "\\u000a", std::to_string(2999 - i));
  }
  EXPECT_EQ(canonical(backwards + "}"), forwards + "}");
}

TEST(Json, S10_broken_strings_are_refused_where_they_break) {
  EXPECT_EQ(refusal("\"abc"), Refusal("unterminated string", 4));
  EXPECT_EQ(refusal("\"abc\\\""), Refusal("unterminated string", 6));
  EXPECT_EQ(refusal("\"abc\\"), Refusal("unterminated string", 5));
  EXPECT_EQ(refusal("\"a\nb\""), Refusal("control character in a string", 2));
  EXPECT_EQ(refusal(std::string_view("\"12345678\0\"", 11)),
            Refusal("control character in a string", 9));
  EXPECT_EQ(refusal(R"("a\x41")"), Refusal("unknown escape", 2));
  EXPECT_EQ(refusal(R"("a\U0041")"), Refusal("unknown escape", 2));
  EXPECT_EQ(refusal(R"("a\u00g1")"), Refusal("broken \\u escape", 2));
  EXPECT_EQ(refusal(R"("a\u004")"), Refusal("broken \\u escape", 2));
  EXPECT_EQ(refusal("\"\\\xc3\xa9\""), Refusal("unknown escape", 1));
}

TEST(Json, S10_broken_structure_is_refused_where_it_breaks) {
  EXPECT_EQ(refusal(""), Refusal("unexpected end", 0));
  EXPECT_EQ(refusal("  "), Refusal("unexpected end", 2));
  EXPECT_EQ(refusal("[1"), Refusal("unexpected end", 2));
  EXPECT_EQ(refusal("[1,]"), Refusal("not a value", 3));
  EXPECT_EQ(refusal("[,1]"), Refusal("not a value", 1));
  EXPECT_EQ(refusal("[1 2]"), Refusal("neither a comma nor the end of the container", 3));
  EXPECT_EQ(refusal("[1}"), Refusal("neither a comma nor the end of the container", 2));
  EXPECT_EQ(refusal("{\"a\":1]"), Refusal("neither a comma nor the end of the container", 6));
  EXPECT_EQ(refusal("{\"a\":1,}"), Refusal("not a name", 7));
  EXPECT_EQ(refusal("{\"a\"}"), Refusal("no colon after a name", 4));
  EXPECT_EQ(refusal("{\"a\" "), Refusal("no colon after a name", 5));
  EXPECT_EQ(refusal("{a:1}"), Refusal("not a name", 1));
  EXPECT_EQ(refusal("1 2"), Refusal("more than one value", 2));
  EXPECT_EQ(refusal("{} }"), Refusal("more than one value", 3));
  EXPECT_EQ(refusal("]"), Refusal("not a value", 0));
  EXPECT_EQ(refusal("nul"), Refusal("not a value", 0));
  EXPECT_EQ(refusal("truefalse"), Refusal("more than one value", 4));
  EXPECT_EQ(refusal("[1/*c*/]"), Refusal("neither a comma nor the end of the container", 2));
  EXPECT_EQ(refusal(std::string_view("1\0", 2)), Refusal("more than one value", 1));
}

TEST(Json, S10_depth_ends_at_the_limit) {
  const std::size_t depth = limits::json_depth_max;
  const std::string arrays = repeated("[", depth) + repeated("]", depth);
  EXPECT_EQ(canonical(arrays), arrays);
  EXPECT_EQ(refusal("[" + arrays + "]"), Refusal("nested too deeply", depth));
  // Every level out of order, so that putting them in order is as deep as it can be.
  const std::string objects = repeated("{\"b\":", depth) + "1" + repeated(",\"a\":0}", depth);
  EXPECT_EQ(canonical(objects), repeated("{\"a\":0,\"b\":", depth) + "1" + repeated("}", depth));
  EXPECT_EQ(refusal(repeated("{\"a\":", 65)), Refusal("nested too deeply", 64 * 5));
}

TEST(Json, T39_a_hundred_thousand_open_brackets_are_refused_flat) {
  EXPECT_EQ(refusal(std::string(100'000, '[')), Refusal("nested too deeply", 64));
  EXPECT_EQ(refusal(repeated("[{\"\":", 100'000)), Refusal("nested too deeply", 32 * 5));
}

TEST(Json, T39_a_hundred_thousand_members_are_sorted_and_not_hashed) {
  constexpr int first = 100'000;
  constexpr int last = 199'999;
  const auto member = [](int i) {
    return "\"xxxxxxxxxxxxxxxxxxxx" + std::to_string(i) + "\":" + std::to_string(i);
  };
  std::string forwards = "{" + member(first);
  for (int i = first + 1; i <= last; ++i) forwards += "," + member(i);
  std::string backwards = "{" + member(last);
  for (int i = last - 1; i >= first; --i) backwards += "," + member(i);
  EXPECT_TRUE(canonical(forwards + "}") == forwards + "}");
  EXPECT_TRUE(canonical(backwards + "}") == forwards + "}");
  const std::string same = "{" + repeated("\"name\":1,", 99'999) + "\"name\":1}";
  EXPECT_EQ(refusal(same).first, "duplicate name");
}

TEST(Json, T39_a_megabyte_inside_64_levels_out_of_order_comes_out_whole) {
  const std::string big = "\"" + std::string(1'000'000, 'x') + "\"";
  const std::string text = repeated("{\"b\":", 64) + big + repeated(",\"a\":0}", 64);
  EXPECT_TRUE(canonical(text) == repeated("{\"a\":0,\"b\":", 64) + big + repeated("}", 64));
}

TEST(Json, S10_real_payment_objects_keep_their_meaning) {
  IDEM_NEED_EXTERNAL(data);
  const std::string text = test::read_file(data / "stripe-fixtures" / "fixtures3.json");
  const auto form = canonicalize(text);
  ASSERT_TRUE(form.has_value()) << form.error().what;
  EXPECT_TRUE(canonical(*form) == *form);
  EXPECT_TRUE(fingerprint_form(text).value_or("refused") == *form);
  // Another reader finds the same values before and after.
  const auto same = [](auto&& self, const test::Json& a, const test::Json& b) -> bool {
    if (a.kind != b.kind || a.boolean != b.boolean || a.integer != b.integer) return false;
    if (a.real != b.real || a.string != b.string || a.items.size() != b.items.size()) return false;
    if (a.members.size() != b.members.size()) return false;
    for (std::size_t i = 0; i < a.items.size(); ++i) {
      if (!self(self, a.items[i], b.items[i])) return false;
    }
    return std::ranges::all_of(a.members, [&](const auto& member) {
      return b.has(member.first) && self(self, member.second, b[member.first]);
    });
  };
  const auto before = test::parse_json(text);
  const auto after = test::parse_json(*form);
  ASSERT_TRUE(before && after);
  EXPECT_TRUE(same(same, *before, *after));
}

// A random value, written in two spellings: other member order, white space and escapes.
struct TwoSpellings {
  std::string plain;
  std::string other;
};

std::string spaces() { return *rc::gen::element<std::string>("", "", " ", "\n\t"); }

TwoSpellings any_string() {
  static const std::vector<TwoSpellings> pieces = {{"a", "\\u0061"},
                                                   {"b", "b"},
                                                   {"\\n", "\\u000A"},
                                                   {"\\\"", "\\u0022"},
                                                   {"/", "\\/"},
                                                   {"\xc3\xa9", "\\u00e9"},
                                                   {"\xef\xac\xb3", "\\uFB33"},
                                                   {"\xf0\x9f\x98\x80", "\\ud83d\\uDE00"},
                                                   {"\\u001f", "\\u001F"},
                                                   {"abcdefghij", "abcdefghij"}};
  TwoSpellings text{"\"", "\""};
  const int length = *rc::gen::inRange(0, 4);
  for (int i = 0; i < length; ++i) {
    const TwoSpellings& piece = pieces[*rc::gen::inRange<std::size_t>(0, pieces.size())];
    text.plain += piece.plain;
    text.other += piece.other;
  }
  return {text.plain + "\"", text.other + "\""};
}

TwoSpellings any_value(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 7 : 4);
  if (kind == 0) return {"1.5", "15e-1"};
  if (kind == 1) return {"-70", "-7.0E1"};
  if (kind == 2) return {"null", "null"};
  if (kind == 3) return any_string();
  std::vector<TwoSpellings> parts;
  std::set<std::string> names;
  const bool object = kind > 4;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    TwoSpellings part = any_value(depth - 1);
    if (object) {
      const TwoSpellings name = any_string();
      if (!names.insert(name.plain).second) continue;
      part = {name.plain + ":" + part.plain, name.other + spaces() + ":" + part.other};
    }
    parts.push_back(part);
  }
  const auto write = [&](std::string TwoSpellings::* spelling, const std::string& space) {
    std::string text = object ? "{" : "[";
    for (std::size_t i = 0; i < parts.size(); ++i) {
      text.append(i == 0 ? "" : ",").append(space).append(parts[i].*spelling).append(space);
    }
    return text + space + (object ? "}" : "]");
  };
  const std::string plain = write(&TwoSpellings::plain, "");
  if (object && *rc::gen::arbitrary<bool>()) std::ranges::reverse(parts);
  return {plain, write(&TwoSpellings::other, spaces())};
}

RC_GTEST_PROP(JsonProperty, T43_spellings_of_one_value_have_one_form_which_is_its_own, ()) {
  const TwoSpellings value = any_value(4);
  const auto form = canonicalize(value.plain);
  RC_ASSERT(form.has_value());
  RC_ASSERT(canonical(value.other) == *form);
  RC_ASSERT(fingerprint_form(value.other).value_or("refused") == *form);
  RC_ASSERT(canonical(*form) == *form);
}

RC_GTEST_PROP(JsonProperty, S10_any_bytes_give_their_own_form_or_a_refusal_inside_the_text, ()) {
  const auto one = rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("{}[]\",:0123eE+-.\\u dtruefalsnl\n\x80\xc3\xa9\xed")));
  for (const std::string& text : *rc::gen::container<std::vector<std::string>>(50, one)) {
    const auto form = canonicalize(text);
    if (form) {
      RC_ASSERT(canonical(*form) == *form);
    } else {
      RC_ASSERT(form.error().offset <= text.size());
      RC_ASSERT(!form.error().what.empty());
    }
  }
}

}  // namespace
}  // namespace idem
