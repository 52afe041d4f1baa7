// Protocol §8: what a client may write in Idempotency-Key, and which key it means.
#include <idem/key.hpp>
#include <idem/limits.hpp>

#include "support/external_data.hpp"
#include "support/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace idem {
namespace {

using KeyCode = KeyError::Code;

std::expected<std::string, KeyError> parsed(std::string_view line, const KeyOptions& options) {
  return parse_key({&line, 1}, options);
}

// The key, or what no key can be.
std::string key_of(std::string_view line, const KeyOptions& options = {}) {
  return parsed(line, options).value_or("\x01refused");
}

// The code of the refusal; fails where the value is accepted.
KeyCode refusal_of(std::string_view line, const KeyOptions& options = {}) {
  const auto key = parsed(line, options);
  EXPECT_FALSE(key.has_value()) << "accepted: " << line;
  EXPECT_TRUE(key.has_value() || !key.error().detail.empty());
  return key ? KeyCode::missing : key.error().code;
}

std::string in_quotes(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

TEST(Key, S08_accepts_exactly_the_structured_field_cases_that_are_strings) {
  IDEM_NEED_EXTERNAL(data);
  int strings = 0;
  int others = 0;
  for (const char* file : {"item.json", "string.json", "token.json"}) {
    const auto cases = test::parse_json(test::read_file(data / "structured-field-tests" / file));
    ASSERT_TRUE(cases && !cases->items.empty()) << file;
    for (const test::Json& one : cases->items) {
      SCOPED_TRACE(std::string(file) + ": " + one["name"].string);
      std::vector<std::string_view> lines;
      for (const test::Json& line : one["raw"].items) lines.push_back(line.string);
      if (lines.size() > 1) {
        const auto key = parse_key(lines, {});
        ASSERT_FALSE(key.has_value());
        EXPECT_EQ(key.error().code, KeyCode::several_lines);
        continue;
      }
      const bool is_string = one.has("expected") && one["header_type"].string == "item" &&
                             one["expected"].items[0].kind == test::Json::Kind::string;
      const auto item = parse_string_item(lines.at(0));
      EXPECT_EQ(item.has_value(), is_string);
      if (is_string) {
        EXPECT_EQ(item.value_or("refused"), one["expected"].items[0].string);
      }
      ++(is_string ? strings : others);
    }
  }
  EXPECT_GE(strings, 5);
  EXPECT_GE(others, 15);
}

TEST(Key, T48_quoted_and_bare_spellings_are_one_key) {
  for (const std::string value :
       {"8e03978e-40d5-43e8-bc93-6894a57f9324", "a", "a\\b", "k=v:/?@!"}) {
    ASSERT_EQ(key_of(value), value);
    EXPECT_EQ(key_of(in_quotes(value)), value);
    EXPECT_EQ(key_of("  " + in_quotes(value) + ";v=1  "), value);
  }
}

TEST(Key, T48_escapes_are_decoded_and_only_two_exist) {
  EXPECT_EQ(key_of(R"("a\"b\\c")"), R"(a"b\c)");
  EXPECT_EQ(key_of(R"("\\\"")"), R"(\")");
  for (const std::string_view wrong :
       {R"("a\n")", R"("a\u0041")", R"("a\ ")", R"("a\)", R"("a\")", R"("a)", R"(")", R"("a"b")"}) {
    EXPECT_EQ(refusal_of(wrong), KeyCode::malformed) << wrong;
  }
}

TEST(Key, T48_parameters_of_every_type_are_checked_and_ignored) {
  for (const std::string_view parameters : {";a",
                                            ";a;b",
                                            "; a=1",
                                            ";   *a.b-c_d*9=1",
                                            ";a=-1",
                                            ";a=999999999999999",
                                            ";a=0.5",
                                            ";a=-999999999999.999",
                                            ";a=\"x;\\\" y\"",
                                            ";a=tok/en:*",
                                            ";a=*t",
                                            ";a=:aGVsbG8=:",
                                            ";a=::",
                                            ";a=:aGVsbG8:",
                                            ";a=?0",
                                            ";a=?1",
                                            ";a=@1659578233",
                                            ";a=@-1",
                                            ";a=%\"f%c3%bc\"",
                                            ";a=%\"\"",
                                            ";a=1;a=2",
                                            ";a=1 "}) {
    EXPECT_EQ(key_of("\"key\"" + std::string(parameters)), "key") << parameters;
  }
}

TEST(Key, T48_a_malformed_parameter_refuses_the_key) {
  for (const std::string_view parameters : {";",
                                            ";A",
                                            ";1",
                                            ";a=",
                                            ";a=-",
                                            ";a=1000000000000000",
                                            ";a=1.",
                                            ";a=.5",
                                            ";a=1.2345",
                                            ";a=1234567890123.0",
                                            ";a=--1",
                                            ";a=1e5",
                                            ";a=\"x",
                                            ";a=\"\\x\"",
                                            ";a=\"\t\"",
                                            ";a=:a:",
                                            ";a=:=:",
                                            ";a=:aGVsbG8==:",
                                            ";a=:aGVs=bG8=:",
                                            ";a=:a b:",
                                            ";a=:aGVsbG8=",
                                            ";a=?2",
                                            ";a=?",
                                            ";a=?true",
                                            ";a=@",
                                            ";a=@1.5",
                                            ";a=@x",
                                            ";a=%\"%C3%BC\"",
                                            ";a=%\"%c3\"",
                                            ";a=%\"%ff\"",
                                            ";a=%\"%c\"",
                                            ";a=%\"%c",
                                            ";a=%\"\xc3\xbc\"",
                                            ";a=%x",
                                            ";a=(1)",
                                            ";a=,",
                                            " ;a",
                                            ";a =1",
                                            ";a= 1",
                                            ";a=1,",
                                            ";\ta",
                                            ";a=1 ;b",
                                            ";a\xc3\xa9",
                                            ";a=1\t"}) {
    EXPECT_EQ(refusal_of("\"key\"" + std::string(parameters)), KeyCode::malformed) << parameters;
  }
}

TEST(Key, T48_an_empty_key_is_refused_in_every_spelling) {
  for (const std::string_view empty : {"", " ", "   ", "\"\"", " \"\" ", "\"\";a=1"}) {
    EXPECT_EQ(refusal_of(empty), KeyCode::empty) << '[' << empty << ']';
  }
  EXPECT_EQ(refusal_of("\"\"", {.bytes_min = 0}), KeyCode::empty);
}

TEST(Key, T48_a_list_or_a_second_line_is_refused) {
  for (const std::string_view list : {"a,b", "a, b", "\"a\", \"b\"", "\"a\",\"b\"", "\"a\" \"b\"",
                                      "a;b", "(\"a\" \"b\")", ",", "a,"}) {
    EXPECT_EQ(refusal_of(list), KeyCode::malformed) << list;
  }
  const std::string_view same[] = {"a", "a"};
  EXPECT_EQ(parse_key(same, {}).error().code, KeyCode::several_lines);
  const std::string_view split_string[] = {"\"a", "b\""};
  EXPECT_EQ(parse_key(split_string, {}).error().code, KeyCode::several_lines);
  EXPECT_EQ(parse_key({}, {}).error().code, KeyCode::missing);
}

TEST(Key, T48_nul_control_and_non_ascii_bytes_are_refused) {
  for (int byte = 0; byte < 256; ++byte) {
    if (byte >= 0x20 && byte <= 0x7E) continue;
    const std::string inside = std::string("a") + static_cast<char>(byte) + "b";
    EXPECT_EQ(refusal_of(inside), KeyCode::malformed) << byte;
    EXPECT_EQ(refusal_of('"' + inside + '"'), KeyCode::malformed) << byte;
    EXPECT_EQ(refusal_of("ab" + std::string(1, static_cast<char>(byte))), KeyCode::malformed)
        << byte;
    EXPECT_EQ(refusal_of("\"ab\"" + std::string(1, static_cast<char>(byte))), KeyCode::malformed);
  }
}

TEST(Key, T48_case_matters) {
  EXPECT_EQ(key_of("Order-1"), "Order-1");
  EXPECT_NE(key_of("Order-1"), key_of("order-1"));
  EXPECT_NE(key_of("\"Order-1\""), key_of("\"order-1\""));
}

TEST(Key, T48_spaces_around_are_dropped_and_spaces_inside_count) {
  EXPECT_EQ(key_of("  a  "), "a");
  EXPECT_EQ(key_of("  \"a\"  "), "a");
  EXPECT_EQ(key_of("\"a \""), "a ");
  EXPECT_EQ(key_of("\" a\""), " a");
  EXPECT_EQ(key_of("\"a b\""), "a b");
  EXPECT_NE(key_of("\"a \""), key_of("\"a\""));
  EXPECT_EQ(refusal_of("a b"), KeyCode::malformed);
  EXPECT_EQ(refusal_of("\"a\"\t"), KeyCode::malformed);
}

TEST(Key, S08_a_value_that_starts_with_a_quote_is_never_bare) {
  for (const std::string_view value : {"\"abc", "\"", "\"a\"b", "\"a\"\"", "\"abc\"x"}) {
    EXPECT_EQ(refusal_of(value), KeyCode::malformed) << value;
    EXPECT_EQ(refusal_of(value, {.syntax = KeySyntax::bare}), KeyCode::malformed) << value;
  }
  EXPECT_EQ(refusal_of("a\"b"), KeyCode::malformed);
}

TEST(Key, S08_the_syntax_option_shuts_out_the_other_form) {
  EXPECT_EQ(key_of("abc", {.syntax = KeySyntax::bare}), "abc");
  EXPECT_EQ(refusal_of("\"abc\"", {.syntax = KeySyntax::bare}), KeyCode::malformed);
  EXPECT_EQ(key_of("\"abc\"", {.syntax = KeySyntax::structured}), "abc");
  EXPECT_EQ(refusal_of("abc", {.syntax = KeySyntax::structured}), KeyCode::malformed);
}

TEST(Key, S08_length_is_counted_in_decoded_bytes) {
  const std::string longest(limits::key_bytes_max, '\\');
  EXPECT_EQ(key_of(longest), longest);
  EXPECT_EQ(key_of(in_quotes(longest)), longest);
  EXPECT_EQ(refusal_of(longest + "x"), KeyCode::too_long);
  EXPECT_EQ(refusal_of(in_quotes(longest + "x")), KeyCode::too_long);
  EXPECT_EQ(key_of("12345678", {.bytes_min = 8}), "12345678");
  EXPECT_EQ(refusal_of("1234567", {.bytes_min = 8}), KeyCode::too_short);
  EXPECT_EQ(refusal_of(R"("\\\\\\\\")", {.bytes_min = 8}), KeyCode::too_short);
}

TEST(Key, T38_a_refusal_never_repeats_the_key) {
  const std::string secret = "sekret-7f3a";
  for (const std::string& line :
       {secret + ",", '"' + secret, '"' + secret + "\";A", secret + std::string(300, 'x'),
        '"' + secret + "\\x\"", secret + "\x01"}) {
    const auto key = parsed(line, {});
    ASSERT_FALSE(key.has_value());
    EXPECT_EQ(key.error().detail.find("sekret"), std::string::npos) << key.error().detail;
  }
}

RC_GTEST_PROP(KeyProperty, T48_every_printable_string_survives_quoting, ()) {
  const auto value = *rc::gen::resize(
      static_cast<int>(limits::key_bytes_max),
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange(' ', '\x7f'))));
  RC_PRE(value.size() <= limits::key_bytes_max);  // nonEmpty() may ask again for a longer one.
  RC_ASSERT(key_of(in_quotes(value)) == value);
  const bool bare = value.find_first_of(" \",;") == std::string::npos;
  if (bare) RC_ASSERT(key_of(value) == value);
}

RC_GTEST_PROP(KeyProperty, T48_any_bytes_give_a_lawful_key_or_a_refusal, ()) {
  // Small alphabet: the characters on which the grammar turns.
  const auto line =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("\"\\;= ,:?@%*a1.-\t\x80")));
  const auto key = parsed(line, {});
  if (!key) return;
  RC_ASSERT(!key->empty() && key->size() <= limits::key_bytes_max);
  for (const char c : *key) RC_ASSERT(c >= ' ' && c <= '~');
  RC_ASSERT(key_of(in_quotes(*key)) == *key);
}

}  // namespace
}  // namespace idem
