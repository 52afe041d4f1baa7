// json::parse against Boost.JSON, which is a reader of others: the same values of the texts that
// both accept, and a reason for each text that one of them refuses. The C library reads the
// doubles, because Boost.JSON may be off by some last digits.
#include "json/value.hpp"

#include "support/external_data.hpp"

#include <idem/json.hpp>
#include <idem/limits.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/json.hpp>
#include <boost/version.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace idem {
namespace {

namespace other = boost::json;

std::uint32_t seed_of_run() {
  const char* const given = std::getenv("IDEM_SEED");
  const auto seed = given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                                     : std::uint32_t{20'261'129};
  fmt::print("IDEM_SEED={}\n", seed);
  return seed;
}

/// The number literals outside of strings, in their order, of a text that is JSON.
std::vector<std::string> numbers_of(std::string_view text) {
  std::vector<std::string> numbers;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      for (++at; text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (text[at] == '-' || (text[at] >= '0' && text[at] <= '9')) {
      const auto end = std::min(text.find_first_not_of("-+.eE0123456789", at), text.size());
      numbers.emplace_back(text.substr(at, end - at));
      at = end - 1;
    }
  }
  return numbers;
}

/// Walks a value of ours and one of the other reader together, in the order of the text.
class Comparison {
 public:
  explicit Comparison(std::string_view text) : numbers_(numbers_of(text)) {}

  bool same(const json::Value& ours, const other::value& theirs) {
    return std::visit([&](const auto& is) { return same_as(is, theirs); }, ours.is);
  }
  bool read_all_numbers() const noexcept { return number_ == numbers_.size(); }

 private:
  bool same_as(std::nullptr_t, const other::value& theirs) { return theirs.is_null(); }
  bool same_as(bool ours, const other::value& theirs) {
    return theirs.is_bool() && theirs.get_bool() == ours;
  }
  bool same_as(std::int64_t ours, const other::value& theirs) {
    ++number_;
    return theirs.is_int64() && theirs.get_int64() == ours;
  }
  bool same_as(std::uint64_t ours, const other::value& theirs) {
    ++number_;
    return theirs.is_uint64() && theirs.get_uint64() == ours;
  }
  bool same_as(double ours, const other::value& theirs) {
    if (!theirs.is_double() || number_ == numbers_.size()) return false;
    const double exact = std::strtod(numbers_[number_++].c_str(), nullptr);
    if (std::bit_cast<std::uint64_t>(ours) != std::bit_cast<std::uint64_t>(exact)) return false;
    const double near = theirs.get_double();
    // It makes 0 times infinity of `0e400`, and infinity of the largest doubles.
    if (std::isnan(near)) return ours == 0;
    if (std::isinf(near)) return std::fabs(ours) > 1.79e308;
    return std::fabs(near - ours) <= 1e-12 * std::fabs(ours) + 1e-300;
  }
  bool same_as(const std::string& ours, const other::value& theirs) {
    return theirs.is_string() && std::string_view(theirs.get_string()) == ours;
  }
  bool same_as(const json::Array& ours, const other::value& theirs) {
    return theirs.is_array() &&
           std::ranges::equal(ours, theirs.get_array(),
                              [&](const auto& a, const auto& b) { return same(a, b); });
  }
  bool same_as(const json::Object& ours, const other::value& theirs) {
    return theirs.is_object() &&
           std::ranges::equal(ours, theirs.get_object(), [&](const auto& a, const auto& b) {
             return std::string_view(b.key()) == a.name && same(a.value, b.value());
           });
  }

  std::vector<std::string> numbers_;
  std::size_t number_ = 0;
};

/// The other reader refuses an exponent that an int cannot hold, also one of a zero.
bool has_long_exponent(std::string_view text) {
  return std::ranges::any_of(numbers_of(text), [](const std::string& number) {
    const auto mark = number.find_first_of("eE");
    if (mark == number.npos) return false;
    const auto digits = number.find_first_not_of("+-0", mark + 1);
    return digits != number.npos && number.size() - digits > 8;
  });
}

/// How many texts of a run were of which kind.
struct Counts {
  int both = 0;       ///< Accepted by both readers.
  int ours_only = 0;  ///< Accepted by us; an exponent is too long for the other one.
  int strict = 0;     ///< Refused by us for a reason that is not in RFC 8259.
  int neither = 0;
};

void compare(std::string_view text, Counts& counts) {
  const auto ours = json::parse(text);
  const auto form = canonicalize(text);
  ASSERT_EQ(ours.has_value(), form.has_value());
  if (!ours) {
    ASSERT_EQ(ours.error().what, form.error().what);
    ASSERT_EQ(ours.error().offset, form.error().offset);
  }
  other::error_code error;
  other::parse_options options;
  options.max_depth = 2 * limits::json_depth_max;
  const auto theirs = other::parse({text.data(), text.size()}, error, {}, options);
  if (ours && error) {
    ASSERT_TRUE(has_long_exponent(text)) << error.message();
    ++counts.ours_only;
  } else if (ours) {
    Comparison comparison(text);
    ASSERT_TRUE(comparison.same(*ours, theirs));
    ASSERT_TRUE(comparison.read_all_numbers());
    ++counts.both;
  } else if (!error) {
    const auto what = ours.error().what;
    ASSERT_TRUE(what == "duplicate name" || what == "number overflows a double" ||
                what == "nested too deeply")
        << what;
    ++counts.strict;
  } else {
    ++counts.neither;
  }
}

/// Texts that are JSON apart from a duplicate name or a number that overflows here and there.
class Texts {
 public:
  explicit Texts(std::uint32_t seed) : random_(seed) {}

  std::string text() { return space() + value(0) + space(); }

  /// A few bytes deleted, doubled, moved or replaced by such as JSON is made of.
  std::string mutation(std::string text) {
    static constexpr std::string_view pieces[] = {"\"",       "\\",
                                                  "{",        "}",
                                                  "[",        "]",
                                                  ",",        ":",
                                                  "0",        "-",
                                                  ".",        "e",
                                                  "1e999",    "null",
                                                  "tr",       "\n",
                                                  "\x1f",     "\xff",
                                                  "\xc3\xa9", "\xed\xa0\x80",
                                                  "/",        "+",
                                                  "\\u12",    "\\ud83d",
                                                  "\"a\":",   "99999999999999999999"};
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::size_t at = below(text.size() + 1);
      const std::size_t bytes = std::min(text.size() - at, std::size_t{1} + below(4));
      switch (below(4)) {
        case 0:
          text.erase(at, bytes);
          break;
        case 1:
          text.insert(at, std::string(text, at, bytes));
          break;
        case 2:
          text.insert(at, pieces[below(std::size(pieces))]);
          break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(below(256));
      }
    }
    return text;
  }

  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }

 private:
  std::string space() {
    static constexpr std::string_view spaces[] = {"", "", "", "", " ", "\n", "\t\r\n "};
    return std::string(spaces[below(std::size(spaces))]);
  }
  std::string digits(std::size_t most) {
    std::string out;
    for (std::size_t count = 1 + below(most); count > 0; --count) {
      out += static_cast<char>('0' + below(10));
    }
    return out;
  }
  std::string number() {
    static constexpr std::string_view edges[] = {"0",
                                                 "-0",
                                                 "9223372036854775807",
                                                 "9223372036854775808",
                                                 "-9223372036854775808",
                                                 "-9223372036854775809",
                                                 "18446744073709551615",
                                                 "18446744073709551616",
                                                 "9007199254740993",
                                                 "1.7976931348623158e308",
                                                 "1.7976931348623159e308",
                                                 "4.9e-324",
                                                 "2.4703282292062327e-324",
                                                 "2.2250738585072011e-308",
                                                 "-1e-400",
                                                 "0e400",
                                                 "1e999999999"};
    if (below(3) == 0) return std::string(edges[below(std::size(edges))]);
    std::string out = below(3) == 0 ? "-" : "";
    out += below(4) == 0 ? "0" : std::to_string(1 + below(9)) + digits(20);
    if (below(3) == 0) out += "." + digits(25);
    if (below(4) == 0) {
      static constexpr std::string_view marks[] = {"e", "E", "e+", "e-", "E-"};
      out += std::string(marks[below(std::size(marks))]) + digits(3);
    }
    return out;
  }
  std::string string() {
    static constexpr std::string_view parts[] = {"a",
                                                 "key",
                                                 " ",
                                                 "\xc3\xa9",
                                                 "\xe2\x82\xac",
                                                 "\xf0\x9f\x98\x80",
                                                 "\\n",
                                                 "\\\"",
                                                 "\\\\",
                                                 "\\/",
                                                 "\\u0000",
                                                 "\\u00e9",
                                                 "\\uD83D\\uDE00",
                                                 "\\ufffe",
                                                 "a text that is longer than most"};
    std::string out = "\"";
    for (std::size_t count = below(5); count > 0; --count) out += parts[below(std::size(parts))];
    return out + '"';
  }
  std::string value(std::size_t depth) {
    if (depth == 0 && below(30) == 0) {
      const std::size_t nested = 60 + below(8);  // The limit is 64.
      return std::string(nested, '[') + std::string(nested, ']');
    }
    switch (below(depth > 5 ? 4 : 8)) {
      case 0:
        return string();
      case 1:
      case 2:
        return number();
      case 3:
        return below(3) == 0 ? "null" : below(2) == 0 ? "true" : "false";
      case 4:
      case 5:
        return container(depth, '[', ']');
      default:
        return container(depth, '{', '}');
    }
  }
  std::string container(std::size_t depth, char open, char close) {
    std::string out(1, open);
    for (std::size_t i = 0, count = below(6); i < count; ++i) {
      out += i > 0 ? "," : "";
      out += space();
      if (open == '{') {
        // Names of their own, so that a duplicate is seldom.
        std::string name = string();
        if (below(40) != 0) name.insert(1, std::to_string(below(1000)));
        out += name + space() + ':' + space();
      }
      out += value(depth + 1) + space();
    }
    return out + close;
  }

  std::mt19937 random_;
};

std::vector<std::string> parsing_suite(const std::filesystem::path& data) {
  std::vector<std::filesystem::path> files;
  for (const auto& file :
       std::filesystem::directory_iterator(data / "JSONTestSuite/test_parsing")) {
    files.push_back(file.path());
  }
  std::ranges::sort(files);
  std::vector<std::string> texts;
  for (const auto& file : files) texts.push_back(test::read_file(file));
  return texts;
}

TEST(JsonSecondReader, S10_finds_the_same_values_in_the_parsing_suite) {
  IDEM_NEED_EXTERNAL(data);
  Counts counts;
  const auto texts = parsing_suite(data);
  for (const auto& text : texts) {
    SCOPED_TRACE(text.substr(0, 200));
    compare(text, counts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(texts.size(), 280U);
  EXPECT_GE(counts.both, 90);
  EXPECT_GE(counts.neither, 180);
  EXPECT_GE(counts.strict, 2);  // Duplicate names, and numbers that overflow.
}

TEST(JsonSecondReader, S10_finds_the_same_values_in_mutations_of_the_suite) {
  IDEM_NEED_EXTERNAL(data);
  Texts random(seed_of_run());
  Counts counts;
  const auto suite = parsing_suite(data);
  for (int i = 0; i < 60'000; ++i) {
    const std::string& chosen = suite[random.below(suite.size())];
    const std::string text = random.mutation(chosen.substr(0, 1000));
    SCOPED_TRACE(text);
    compare(text, counts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(counts.both, 3'000);
  EXPECT_GE(counts.neither, 10'000);
}

TEST(JsonSecondReader, S10_finds_the_same_values_in_random_texts_and_their_mutations) {
  Texts random(seed_of_run() + 1);
  Counts whole;
  Counts mutated;
  for (int i = 0; i < 30'000; ++i) {
    const std::string text = random.text();
    {
      SCOPED_TRACE(text);
      compare(text, whole);
    }
    const std::string changed = random.mutation(text);
    SCOPED_TRACE(changed);
    compare(changed, mutated);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(whole.neither, 0);
  EXPECT_GE(whole.both, 20'000);
  EXPECT_GE(whole.strict, 300);
  // Long exponents, which Boost 1.81 refuses and 1.83 reads.
  if (BOOST_VERSION < 108300) {
    EXPECT_GE(whole.ours_only + mutated.ours_only, 1);
  }
  EXPECT_GE(mutated.both, 3'000);
  EXPECT_GE(mutated.neither, 5'000);
}

}  // namespace
}  // namespace idem
