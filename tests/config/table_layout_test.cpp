#include "cli/terminal/table_layout.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/terminal/text_width.hpp"

/// Tables for people: what is shortened on a narrow terminal, and what never is.
namespace idem::cli {
namespace {

const std::string ref = "0123456789abcdef0123456789abcdef";
const std::string reason = "the bank's list of today says that it was booked twice";

Rows records() {
  return {{"REF", "STATE", "SCOPE", "REASON"},
          {ref, "completed", "acme", "-"},
          {ref, "unknown", "acme-with-a-long-name", reason}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

TEST(TextWidth, counts_columns_and_not_bytes) {
  EXPECT_EQ(columns_of("acme"), 4U);
  EXPECT_EQ(columns_of("é"), 1U);
  EXPECT_EQ(columns_of("e\xCC\x81"), 1U) << "a combining mark has no column";
  EXPECT_EQ(columns_of("注文"), 4U);
  EXPECT_EQ(columns_of("\xFF"), 1U) << "a byte that is no character";
  EXPECT_EQ(columns_of(""), 0U);
}

TEST(TextWidth, shortens_in_the_middle_and_cuts_no_character) {
  EXPECT_EQ(shortened("ticket 4711", 11), "ticket 4711");
  EXPECT_EQ(shortened("ticket 4711", 7), "tic…711");
  EXPECT_EQ(shortened("注文注文注文", 7), "注…文") << "a wide character fits whole or not";
  EXPECT_EQ(shortened("aaaaaae\xCC\x81", 3), "a…e\xCC\x81");
  for (std::size_t columns = 0; columns < 14; ++columns) {
    EXPECT_LE(columns_of(shortened("注a文bé注文cdef", columns)), columns);
  }
}

TEST(TableLayout, without_a_terminal_nothing_is_shortened) {
  const auto text = table_text(records(), {"REASON", "SCOPE"}, {});
  EXPECT_NE(text.find(reason), std::string::npos);
  EXPECT_EQ(lines_of(text).size(), 3U);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(TableLayout, on_a_narrow_terminal_free_text_is_shortened_and_refs_are_whole) {
  for (const std::size_t columns : {80U, 90U, 100U, 120U}) {
    const auto text = table_text(records(), {"REASON", "SCOPE"}, {.columns = columns});
    const auto lines = lines_of(text);
    ASSERT_EQ(lines.size(), 3U) << text;
    for (const auto& line : lines) EXPECT_LE(columns_of(line), columns) << line;
    EXPECT_TRUE(lines[1].starts_with(ref)) << text;
    EXPECT_TRUE(lines[2].starts_with(ref)) << text;
    EXPECT_NE(lines[2].find("…"), std::string::npos) << text;
  }
  EXPECT_EQ(table_text(records(), {"REASON", "SCOPE"}, {.columns = 200}),
            table_text(records(), {"REASON", "SCOPE"}, {}));
}

TEST(TableLayout, where_that_does_not_suffice_each_row_is_a_block_with_whole_values) {
  const auto text = table_text(records(), {"REASON", "SCOPE"}, {.columns = 60});
  EXPECT_EQ(text, "REF     " + ref + "\nSTATE   completed\nSCOPE   acme\n\nREF     " + ref +
                      "\nSTATE   unknown\nSCOPE   acme-with-a-long-name\nREASON  " + reason + "\n");
  EXPECT_EQ(table_text({{"REF", "STATE"}}, {}, {.columns = 4}), "REF  STATE\n")
      << "no row, no block";
}

TEST(TableLayout, columns_stay_below_each_other_behind_wide_characters) {
  const auto lines = lines_of(table_text({{"A", "B"}, {"注文", "x"}, {"abcde", "y"}}, {}, {}));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1], "注文   x");
  EXPECT_EQ(lines[2], "abcde  y");
}

TEST(TableLayout, states_have_colours_and_their_columns_stay_where_they_are) {
  const auto text = table_text(records(), {}, {.colours = true});
  EXPECT_NE(text.find("\x1b[32mcompleted\x1b[0m  acme"), std::string::npos) << text;
  EXPECT_NE(text.find("\x1b[31munknown\x1b[0m    acme"), std::string::npos) << text;
  const auto pairs = pairs_text({{"contested", "yes"}, {"scope", "unknown"}}, {.colours = true});
  EXPECT_EQ(pairs, "contested  \x1b[31myes\x1b[0m\nscope      unknown\n");
  EXPECT_EQ(tone_of("upstream", "DOWN, last answer never"), Tone::bad);
  EXPECT_EQ(tone_of("SCOPE", "completed"), Tone::plain);
}

}  // namespace
}  // namespace idem::cli
