// Numbers: RFC 8785 §3.2.2.3 for canonicalize(), and protocol §10's exactness for
// fingerprint_form().
#include "core/json/decimal.hpp"

#include <idem/json.hpp>

#include "support/external_data.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>

namespace idem {
namespace {

std::string canonical_number(std::string_view text) {
  return canonicalize(text).value_or("refused");
}
std::string exact(std::string_view text) { return fingerprint_form(text).value_or("refused"); }

TEST(JsonNumber, S10_prints_doubles_as_ecmascript_does) {
  IDEM_NEED_EXTERNAL(data);
  std::istringstream lines(test::read_file(data / "jcs" / "es6testfile-1k.txt"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto comma = line.find(',');
    ASSERT_NE(comma, std::string::npos) << line;
    const auto bits = std::strtoull(line.substr(0, comma).c_str(), nullptr, 16);
    EXPECT_EQ(ecmascript_number(std::bit_cast<double>(std::uint64_t{bits})), line.substr(comma + 1))
        << line;
  }
  EXPECT_EQ(count, 1000);
}

TEST(JsonNumber, S10_layout_changes_at_the_limits_of_ecmascript) {
  EXPECT_EQ(ecmascript_number(0.0), "0");
  EXPECT_EQ(ecmascript_number(-0.0), "0");
  EXPECT_EQ(ecmascript_number(1), "1");
  EXPECT_EQ(ecmascript_number(-1.5), "-1.5");
  EXPECT_EQ(ecmascript_number(1e20), "100000000000000000000");
  EXPECT_EQ(ecmascript_number(123456789012345680000.0), "123456789012345680000");
  EXPECT_EQ(ecmascript_number(1e21), "1e+21");
  EXPECT_EQ(ecmascript_number(1.5e300), "1.5e+300");
  EXPECT_EQ(ecmascript_number(1e-6), "0.000001");
  EXPECT_EQ(ecmascript_number(1.25e-6), "0.00000125");
  EXPECT_EQ(ecmascript_number(1e-7), "1e-7");
  EXPECT_EQ(ecmascript_number(1e23), "1e+23");
  EXPECT_EQ(ecmascript_number(std::numeric_limits<double>::denorm_min()), "5e-324");
  EXPECT_EQ(ecmascript_number(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
}

TEST(JsonNumber, S10_canonical_form_rounds_to_the_nearest_double) {
  EXPECT_EQ(canonical_number("-0"), "0");
  EXPECT_EQ(canonical_number("-0.0e5"), "0");
  EXPECT_EQ(canonical_number("1E2"), "100");
  EXPECT_EQ(canonical_number("1.50"), "1.5");
  EXPECT_EQ(canonical_number("999999999999999"), "999999999999999");
  EXPECT_EQ(canonical_number("9007199254740993"), "9007199254740992");  // a tie goes to even
  EXPECT_EQ(canonical_number("9007199254740993.0000000000000000000000000001"), "9007199254740994");
  EXPECT_EQ(canonical_number("2.2250738585072011e-308"), "2.225073858507201e-308");
  EXPECT_EQ(canonical_number("2.4703282292062328e-324"), "5e-324");
  EXPECT_EQ(canonical_number("2.4703282292062327e-324"), "0");
  EXPECT_EQ(canonical_number("1e-400"), "0");
  EXPECT_EQ(canonical_number("-1e-99999999999999999999"), "0");
  EXPECT_EQ(canonical_number("0e99999999999999999999"), "0");
}

TEST(JsonNumber, S10_canonical_form_refuses_a_number_that_overflows_a_double) {
  EXPECT_EQ(canonical_number("1.7976931348623158e308"), "1.7976931348623157e+308");
  for (const std::string_view huge : {"1.7976931348623159e308", "1e309", "1e400", "-1e400",
                                      "1e99999999999999999999", "[1,-1E+99999999999999999999]"}) {
    const auto refused = canonicalize(huge);
    ASSERT_FALSE(refused.has_value()) << huge;
    EXPECT_EQ(refused.error().what, "number overflows a double") << huge;
  }
  EXPECT_EQ(canonical_number(std::string(400, '9')), "refused");
}

TEST(JsonNumber, T44_spellings_of_one_number_are_one) {
  for (const std::string_view text :
       {"0.001", "0.0010", "1e-3", "1E-3", "10e-4", "0.1e-2", "1e-03"}) {
    EXPECT_EQ(canonical_number(text), "0.001") << text;
    EXPECT_EQ(exact(text), "0.001") << text;
  }
  for (const std::string_view text :
       {"0", "-0", "0.0", "-0.00", "0e5", "0e-5", "0E400", "-0e99999999999999999999"}) {
    EXPECT_EQ(exact(text), "0") << text;
  }
  for (const std::string_view text : {"100", "1e2", "100.0", "1.00E+2", "10000e-2"}) {
    EXPECT_EQ(exact(text), "100") << text;
  }
}

TEST(JsonNumber, T44_integers_beyond_two_to_the_53_stay_apart) {
  EXPECT_EQ(exact("9007199254740992"), "9007199254740992");
  EXPECT_EQ(exact("9007199254740993"), "#9007199254740993e0");
  EXPECT_EQ(exact("-9007199254740993"), "#-9007199254740993e0");
  EXPECT_EQ(exact("9007199254740993.0"), "#9007199254740993e0");
  EXPECT_EQ(exact("90071992547409930e-1"), "#9007199254740993e0");
  EXPECT_NE(exact("18446744073709551615"), exact("18446744073709551616"));
  EXPECT_NE(exact("18446744073709551616"), exact("18446744073709552000"));
  EXPECT_EQ(exact("18446744073709552000"), "18446744073709552000");
  EXPECT_NE(exact("0.1"), exact("0.1000000000000000000000001"));
}

TEST(JsonNumber, T44_a_number_that_no_double_holds_goes_in_exactly_and_unexpanded) {
  EXPECT_EQ(exact("1e400"), "#1e400");
  EXPECT_EQ(exact("10.0e399"), "#1e400");
  EXPECT_EQ(exact("-120e399"), "#-12e400");
  EXPECT_EQ(exact("1e-400"), "#1e-400");
  EXPECT_EQ(exact("0.01e-398"), "#1e-400");
  EXPECT_NE(exact("1e-400"), exact("0"));
  EXPECT_EQ(exact("1e999999999999999999"), "#1e999999999999999999");
  EXPECT_EQ(exact("10e-0999999999999999999"), "#1e-999999999999999998");
  EXPECT_EQ(exact("1e0000000000000000000000000003"), "1000");
}

TEST(JsonNumber, T44_exponents_of_any_length_are_refused_not_wrapped) {
  for (const std::string_view text : {"1e1000000000000000000", "1e-1000000000000000000",
                                      "1e99999999999999999999", "-3.5E+18446744073709551617"}) {
    const auto refused = fingerprint_form(text);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_EQ(refused.error().what, "exponent too long");
  }
  EXPECT_EQ(exact("1e" + std::string(100'000, '9')), "refused");
  EXPECT_EQ(canonical_number("1e-" + std::string(100'000, '9')), "0");
}

TEST(JsonNumber, T44_a_long_literal_is_read_to_its_end) {
  const std::string zeros(100'000, '0');
  EXPECT_EQ(exact("1" + zeros + "e-100000"), "1");
  EXPECT_EQ(exact("0." + zeros + "1e100001"), "1");
  EXPECT_EQ(exact("0." + zeros + "1e5"), "#1e-99996");
  EXPECT_EQ(exact("1." + zeros), "1");
  EXPECT_EQ(exact("1." + zeros + "1"), "#1" + zeros + "1e-100001");
  EXPECT_EQ(canonical_number("1." + zeros + "1"), "1");
}

TEST(JsonNumber, S10_the_tag_is_impossible_in_json) {
  EXPECT_EQ(exact(R"(["#1e400",1e400])"), R"(["#1e400",#1e400])");
  EXPECT_FALSE(canonicalize("#1e400").has_value());
  EXPECT_FALSE(fingerprint_form("[#1e400]").has_value());
}

TEST(JsonNumber, S10_the_grammar_is_that_of_json) {
  for (const std::string_view wrong :
       {"",    "-",     "+1",    "01",    "-01",   "00",       ".5",        "1.",  "1.e5",
        "1e",  "1e+",   "1e-",   "0x10",  "1_000", "Infinity", "-Infinity", "NaN", "1,5",
        "--1", "1.5.2", "1e5.2", "1e5e2", "1d",    "-a",       "\xef"}) {
    EXPECT_FALSE(canonicalize(wrong).has_value()) << wrong;
    EXPECT_FALSE(fingerprint_form(wrong).has_value()) << wrong;
  }
}

// Independent of from_chars and to_chars: the C library prints and reads.
RC_GTEST_PROP(JsonNumberProperty, S10_printed_digits_are_the_fewest_that_read_back, ()) {
  const auto value = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
  const auto scaled = static_cast<double>(*rc::gen::arbitrary<std::int64_t>()) / 1000;
  for (const double number : {value, scaled}) {
    if (!std::isfinite(number)) continue;
    const std::string text = ecmascript_number(number);
    RC_ASSERT(std::strtod(text.c_str(), nullptr) == number);
    RC_ASSERT(canonical_number(text) == text);
    if (number == 0) continue;
    const auto digits = static_cast<int>(exact_decimal(text).digit_count());
    char shorter[40];
    std::snprintf(shorter, sizeof shorter, "%.*e", digits - 2, number);
    RC_ASSERT(digits == 1 || std::strtod(shorter, nullptr) != number);
  }
}

struct Spelling {
  std::string literal;
  std::tuple<bool, std::string, long long> value;  // sign, digits, exponent: the model
};

void showValue(const Spelling& spelling, std::ostream& out) { out << spelling.literal; }

// A literal and, by plain string surgery, what it is worth. Few digits, so that equal values meet;
// around 2^53 and the ends of the double's range, so that rounding would merge different ones.
rc::Gen<Spelling> any_spelling() {
  return rc::gen::exec([] {
    const bool negative = *rc::gen::arbitrary<bool>();
    std::string whole = *rc::gen::element<std::string>(
        "0", "1", "10", "12", "100", "9007199254740992", "9007199254740993", "90071992547409930",
        "1000000000000000", "999999999999999", "17976931348623157", "17976931348623159", "5");
    const std::string fraction = *rc::gen::element<std::string>("", "", "0", "00", "1", "10", "01",
                                                                "5", "50", "0000000000001");
    const int exponent = *rc::gen::element(0, 0, 1, -1, 2, -2, 5, -5, 13, -13, 21, -7, 292, 291,
                                           308, 309, 400, -308, -323, -324, -325, -400);
    const std::string mark = *rc::gen::element<std::string>("e", "E");
    const std::string plus = exponent >= 0 ? *rc::gen::element<std::string>("", "+") : "-";
    const std::string zeros = *rc::gen::element<std::string>("", "0", "000");
    std::string literal = (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction);
    if (exponent != 0 || *rc::gen::arbitrary<bool>()) {
      literal += mark + plus + zeros + std::to_string(std::abs(exponent));
    }
    std::string digits = whole + fraction;
    long long power = exponent - static_cast<long long>(fraction.size());
    while (!digits.empty() && digits.back() == '0') {
      digits.pop_back();
      ++power;
    }
    while (!digits.empty() && digits.front() == '0') digits.erase(0, 1);
    if (digits.empty()) return Spelling{literal, {false, "", 0}};
    return Spelling{literal, {negative, digits, power}};
  });
}

RC_GTEST_PROP(JsonNumberProperty, T44_fingerprint_forms_are_equal_exactly_when_the_values_are, ()) {
  const auto spellings = *rc::gen::container<std::vector<Spelling>>(12, any_spelling());
  for (const Spelling& a : spellings) {
    for (const Spelling& b : spellings) {
      const auto form_a = fingerprint_form(a.literal);
      const auto form_b = fingerprint_form(b.literal);
      RC_ASSERT(form_a.has_value() && form_b.has_value());
      RC_ASSERT((*form_a == *form_b) == (a.value == b.value));
    }
  }
}

RC_GTEST_PROP(JsonNumberProperty, S10_canonical_numbers_are_those_of_the_c_library, ()) {
  const Spelling spelling = *any_spelling();
  const double value = std::strtod(spelling.literal.c_str(), nullptr);
  const auto form = canonicalize(spelling.literal);
  RC_ASSERT(form.has_value() == std::isfinite(value));
  if (form) RC_ASSERT(*form == ecmascript_number(value));
}

}  // namespace
}  // namespace idem
