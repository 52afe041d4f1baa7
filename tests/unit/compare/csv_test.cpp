#include <idem/worker_limits.hpp>
#include "unit/compare/reading.hpp"

#include <gtest/gtest.h>

namespace idem::test {
namespace {

using Lines = std::vector<std::string>;

// However the bytes come, the same is read.
Lines read(const std::string& text, const std::vector<std::string>& fields = {"key", "amount"}) {
  Lines first;
  for (const std::size_t step : {1UL, 3UL, 65536UL}) {
    auto reader = compare::read_csv(bytes_of(text, step), fields);
    const Lines lines = reader ? all_of(**reader) : Lines{"! " + reader.error().what};
    if (step > 1) {
      EXPECT_EQ(lines, first) << "in steps of " << step;
    } else {
      first = lines;
    }
  }
  return first;
}

TEST(CompareCsv, reads_rfc_4180) {
  EXPECT_EQ(read("key,amount\r\nk1,1250\r\nk2,\"7\"\r\n"), (Lines{"2: k1|1250", "3: k2|7"}));
  EXPECT_EQ(read("amount,x,key\n5,,k1\n"), (Lines{"2: k1|5"})) << "columns are found by name";
  EXPECT_EQ(read("key,amount\n\"a \"\"b\"\", c\",1\n"), (Lines{"2: a \"b\", c|1"}));
  EXPECT_EQ(read("key,amount\n\"a\r\nb\",1\nk,2\n"), (Lines{"2: a\r\nb|1", "4: k|2"}));
  EXPECT_EQ(read("\xEF\xBB\xBFkey,amount\nk,1\n"), (Lines{"2: k|1"})) << "a byte order mark";
  EXPECT_EQ(read("\xEF\xBB\xBF\"key\",amount\nk,1\n"), (Lines{"2: k|1"}));
  EXPECT_EQ(read("key,amount\n,\n\n\r\nk,\"\"\n"), (Lines{"2: -|-", "5: k|-"}));
  EXPECT_EQ(read("key,amount\n k ,1\n"), (Lines{"2:  k |1"})) << "blanks belong to a field";
}

TEST(CompareCsv, reports_unreadable_lines_and_loses_no_other) {
  EXPECT_EQ(read("key,amount\nk1,1\nk2,2,3\nk3,3\n"),
            (Lines{"2: k1|1", "3:7! has 3 fields, and the first line 2", "4: k3|3"}));
  EXPECT_EQ(read("key,amount\nk1\nk3,3\n"),
            (Lines{"2:3! has 1 fields, and the first line 2", "3: k3|3"}));
  EXPECT_EQ(read("key,amount\nk\"1,1\nk3,3\n"),
            (Lines{"2:2! a quote inside a field that does not begin with one", "3: k3|3"}));
  EXPECT_EQ(read("key,amount\n\"k1\"x,1\nk3,3\n"),
            (Lines{"2:5! there is text after a closing quote", "3: k3|3"}));
  EXPECT_EQ(read("key,amount\nk1,1\rk2,2\nk3,3\n"),
            (Lines{"2:5! a carriage return alone", "3: k3|3"}));
  EXPECT_EQ(read("key,amount\n\"k1,1\nk2,2\nk3,3\n"),
            (Lines{"2:1! nothing closes this quote", "3: k2|2", "4: k3|3"}));
  EXPECT_EQ(read("key,amount\n\"a\nb\"x,1\nk3,3\n"),
            (Lines{"3:3! there is text after a closing quote", "4: k3|3"}));
  EXPECT_EQ(read("key,amount\nk\xFFk,1\nk3,3\n"), (Lines{"2:2! this is no UTF-8", "3: k3|3"}));
}

// A text cut at the end of a line can be read, and so can one cut within its last field.
TEST(CompareCsv, a_last_line_without_an_end_is_read_and_reported) {
  const std::string cut = "! the last line has no end; the file may be cut off";
  EXPECT_EQ(read("key,amount\nk1,12\nk2,1"), (Lines{"2: k1|12", "3: k2|1", "3:0" + cut}));
  EXPECT_EQ(read("key,amount\r\nk1,\"1\""), (Lines{"2: k1|1", "2:0" + cut}));
  EXPECT_EQ(read("key,amount"), (Lines{"1:0" + cut}));
  EXPECT_EQ(read("key,amount\n"), Lines{});
  EXPECT_EQ(read("key,amount\nk1,1\n\n"), (Lines{"2: k1|1"}));
}

TEST(CompareCsv, a_line_has_a_longest_length) {
  const std::string longest(limits::export_line_bytes_max - 10, 'x');
  const std::string longer(limits::export_line_bytes_max + 10, 'x');
  const auto lines = [](const std::string& text) {
    auto reader = compare::read_csv(bytes_of(text, 65536), {"key"});
    return reader ? all_of(**reader) : Lines{};
  };
  EXPECT_EQ(lines("key\n" + longest + "\nk3\n").size(), 2U);
  EXPECT_EQ(lines("key\n" + longest + "\nk3\n").at(1), "3: k3");
  EXPECT_EQ(lines("key\n" + longer + "\nk3\n"),
            (Lines{"2:1! is longer than a line may be", "3: k3"}));
  EXPECT_EQ(lines("key\n\"" + longer + "\"\nk3\n"),
            (Lines{"2:1! nothing closes this quote", "3: k3"}));
}

TEST(CompareCsv, its_first_line_names_the_columns) {
  EXPECT_EQ(read("id,amount\n"), (Lines{"! there is no column key; there are id, amount"}));
  EXPECT_EQ(read("key,key,amount\n"), (Lines{"! two columns have one name"}));
  EXPECT_EQ(read(""), (Lines{"! there is no line with the names of the columns"}));
}

TEST(CompareCsv, a_line_can_be_had_as_json) {
  auto reader = compare::read_csv(bytes_of("key,a mount\n\"k\"\"1\",5\n", 7), {"key"});
  ASSERT_TRUE(reader);
  compare::ExportLine line;
  ASSERT_TRUE((*reader)->next(line).value_or(false));
  EXPECT_EQ((*reader)->json(), R"({"key":"k\"1","a mount":"5"})");
  EXPECT_EQ(line.raw, "\"k\"\"1\",5");
}

TEST(CompareCsv, trouble_with_the_file_is_no_end_of_it) {
  int calls = 0;
  const compare::ReadBytes failing =
      [&](std::span<char> into) -> std::expected<std::size_t, std::string> {
    if (calls++ > 0) return std::unexpected("the disk is gone");
    const std::string text = "key\nk1\nk2";
    std::ranges::copy(text, into.begin());
    return text.size();
  };
  auto reader = compare::read_csv(failing, {"key"});
  ASSERT_TRUE(reader);
  EXPECT_EQ(all_of(**reader), (Lines{"2: k1", "3:0! the disk is gone"}));
}

}  // namespace
}  // namespace idem::test
