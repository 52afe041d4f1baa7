#include <idem/worker_limits.hpp>
#include "unit/compare/reading.hpp"

#include "compare/amount.hpp"

#include <gtest/gtest.h>

namespace idem::test {
namespace {

using Lines = std::vector<std::string>;

Lines read_lines(const std::string& text,
                 const std::vector<std::string>& fields = {"key", "/data/amount"}) {
  Lines first;
  for (const std::size_t step : {1UL, 65536UL}) {
    auto reader = compare::read_json_lines(bytes_of(text, step), fields);
    const Lines lines = reader ? all_of(**reader) : Lines{"! " + reader.error().what};
    if (step > 1) {
      EXPECT_EQ(lines, first);
    } else {
      first = lines;
    }
  }
  return first;
}

TEST(CompareJsonLines, reads_an_object_a_line) {
  EXPECT_EQ(
      read_lines("{\"key\":\"k1\",\"data\":{\"amount\":12.50}}\n\r\n"
                 "{ \"data\" : { \"x\":[{}], \"amount\" : \"7\" } , \"key\" : \"k\\u0032\" }\r\n"),
      (Lines{"1: k1|12.50", "3: k2|7"}));
  EXPECT_EQ(read_lines("{\"key\":null,\"data\":{\"amount\":{}}}\n{\"key\":true}\n"),
            (Lines{"1: -|-", "2: true|-"}));
  EXPECT_EQ(
      read_lines("{\"a/b\":1,\"c~d\":[5,6]}\n", {"a/b", "c~d", "/c~0d/1", "/c~0d/2", "/c~0d/01"}),
      (Lines{"1: 1|-|6|-|-"}));
  EXPECT_EQ(read_lines("{\"key\":12345678901234567890.5}\n", {"key"}),
            (Lines{"1: 12345678901234567890.5"}))
      << "a number stays as it is spelled";
}

TEST(CompareJsonLines, reports_unreadable_lines_and_loses_no_other) {
  EXPECT_EQ(
      read_lines("{\"key\":\"k1\"}\n{\"key\":\n[1]\n{\"key\":1,\"key\":2}\n{\"key\":\"k2\"}\n")
          .size(),
      5U);
  const Lines lines = read_lines("{\"key\":\"k1\"}\n{\"key\" \"x\"}\n[1]\n{\"key\":\"k2\"}\n");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[1].starts_with("2:8! ")) << lines[1];
  EXPECT_EQ(lines[2], "3:1! is no JSON object");
  EXPECT_EQ(lines[3], "4: k2|-");
  const std::string longer(limits::export_line_bytes_max + 1, ' ');
  EXPECT_EQ(read_lines("{}" + longer + "\n{\"key\":\"k2\"}\n"),
            (Lines{"1:0! is longer than a line may be", "2: k2|-"}));
  EXPECT_EQ(read_lines("{}", {"/~2"}).size(), 1U);
}

TEST(CompareJsonLines, a_byte_order_mark_is_none_of_the_first_line) {
  EXPECT_EQ(read_lines("\xEF\xBB\xBF{\"key\":\"k1\"}\n{\"key\":\"k2\"}\n"),
            (Lines{"1: k1|-", "2: k2|-"}));
  EXPECT_EQ(read_lines("{\"key\":\"k1\"}\n\xEF\xBB\xBF{\"key\":\"k2\"}\n").size(), 2U);
  EXPECT_TRUE(read_lines("\xEF\xBB{\"key\":\"k1\"}\n").at(0).starts_with("1:1! "));
  auto reader = compare::read_json_lines(bytes_of("\xEF\xBB\xBF{\"key\":1}\n", 1), {"key"});
  compare::ExportLine line;
  ASSERT_TRUE((*reader)->next(line).value_or(false));
  EXPECT_EQ(line.raw, "{\"key\":1}");
  EXPECT_EQ((*reader)->json(), "{\"key\":1}");
}

TEST(CompareJsonLines, a_last_line_without_an_end_is_read_and_reported) {
  const std::string cut = "! the last line has no end; the file may be cut off";
  EXPECT_EQ(read_lines("{\"key\":\"k1\"}\n{\"key\":\"k2\"}"),
            (Lines{"1: k1|-", "2: k2|-", "2:0" + cut}));
  EXPECT_EQ(read_lines("{\"key\":\"k1\"}\n  "), (Lines{"1: k1|-", "2:0" + cut}));
  EXPECT_EQ(read_lines(""), Lines{});
}

TEST(CompareList, goes_through_all_pages) {
  std::vector<std::string> pages{R"({"data":[{"key":"k1"},{"key":"k2"}]})", R"({"data":[]})",
                                 R"({"data":[{"key":"k3"},7,{"key":"k4"}]})"};
  std::size_t at = 0;
  const auto next = [&]() -> std::expected<std::optional<std::string>, std::string> {
    if (at == pages.size()) return std::nullopt;
    return pages[at++];
  };
  auto reader = compare::read_list({next, *JsonPointer::parse("/data")}, {"key"});
  ASSERT_TRUE(reader);
  EXPECT_EQ(all_of(**reader),
            (Lines{"1: k1", "2: k2", "3: k3", "4:0! is no JSON object", "5: k4"}));
  for (const auto* wrong : {"{", "{}", R"({"data":{}})", R"({"data":[1],"data":[]})"}) {
    pages = {R"({"data":[{"key":"k1"}]})", wrong, R"({"data":[{"key":"k2"}]})"};
    at = 0;
    auto again = compare::read_list({next, *JsonPointer::parse("/data")}, {"key"});
    const Lines lines = all_of(**again);
    ASSERT_EQ(lines.size(), 2U) << wrong;
    EXPECT_TRUE(lines[1].starts_with("2:0! the page ")) << lines[1];
  }
}

std::string amount(std::string_view text, int scale = 0) {
  const auto exact = compare::exact_amount(text, scale);
  return exact ? *exact : "! " + exact.error();
}

TEST(CompareAmount, is_exact_however_it_is_spelled) {
  for (const auto* same : {"1250", "1250.00", "1.25e3", "12500e-1", "1250.0E0"}) {
    EXPECT_EQ(amount(same), "1250") << same;
  }
  EXPECT_EQ(amount("12.50", 2), "1250");
  EXPECT_EQ(amount("1250", -2), "12.5");
  EXPECT_EQ(amount("-0.05"), "-0.05");
  EXPECT_EQ(amount("-0.00"), "0");
  EXPECT_EQ(amount("0.05", 2), "5");
  EXPECT_NE(amount("0.1"), amount("0.1000000000000000055511151231257827"));
  EXPECT_NE(amount("9007199254740993"), amount("9007199254740992"));
  EXPECT_EQ(amount("1000000000000000000000000001"), "1000000000000000000000000001");
}

TEST(CompareAmount, an_ambiguous_number_is_no_amount) {
  for (const auto* wrong : {"", "1,250", "12,50", "EUR 5", "5 EUR", "+5", ".5", "5.", "0x10", "NaN",
                            "01", " 5", "1e400", "1e99999999999999999999"}) {
    EXPECT_TRUE(amount(wrong).starts_with("!")) << wrong << " " << amount(wrong);
  }
}

}  // namespace
}  // namespace idem::test
