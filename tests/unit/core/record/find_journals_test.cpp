#include "core/record/find_journals.hpp"

#include <idem/limits.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

/// Names and lines of the journals by which a search finds records.
namespace idem {
namespace {

using namespace std::chrono_literals;

StoreTime day(int year, unsigned month, unsigned number) {
  return StoreTime(std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) /
                                         static_cast<int>(number)));
}

const Secret find_secret = secret_from("a");

TEST(FindJournals, a_name_says_nothing_about_its_value) {
  const FindName name = find_name(find_secret, "order-4711");
  EXPECT_EQ(name, find_name(find_secret, "order-4711"));
  EXPECT_NE(name, find_name(find_secret, "order-4712"));
  EXPECT_NE(name, find_name(secret_from("b"), "order-4711")) << "another store's secret";
  EXPECT_NE(find_name(find_secret, ""), find_name(find_secret, std::string_view("\0", 1)));
  const std::string journal = find_journal("20261127", name);
  EXPECT_EQ(journal, "find/20261127/" + to_hex(name));
  EXPECT_LE(journal.size(), limits::journal_name_bytes_max);
  EXPECT_EQ(journal.find("4711"), journal.npos);
}

TEST(FindJournals, a_day_is_that_of_utc) {
  EXPECT_EQ(find_day(day(2026, 11, 27)), "20261127");
  EXPECT_EQ(find_day(day(2026, 11, 27) - 1ms), "20261126");
  EXPECT_EQ(find_day(day(2024, 2, 29) + 23h), "20240229");
  EXPECT_EQ(find_day(day(2027, 1, 1) - 1ms), "20261231");
  EXPECT_EQ(find_day(StoreTime{}), "19700101");
  // A retention without an end must not sort before all days.
  EXPECT_GT(find_day(day(9999, 12, 31) + 24h * 400), "20261127");
}

TEST(FindJournals, a_listing_hops_from_day_to_day) {
  const FindName first{};
  FindName last{};
  last.fill(0xff);
  const std::vector<std::string> in_order{
      find_journal("20261127", first), find_journal("20261127", last), behind_find_day("20261127"),
      find_journal("20261128", first)};
  EXPECT_TRUE(std::ranges::is_sorted(in_order));
  EXPECT_EQ(day_of_find_journal(in_order[1]), "20261127");
  for (const auto* other :
       {"find/", "find/20261127", "find/2026112/0", "find/today000/0", "audit", ""}) {
    EXPECT_EQ(day_of_find_journal(other), "") << other;
  }
  EXPECT_FALSE(find_notes.starts_with(find_journals)) << "a search would read it as a day";
}

TEST(FindJournals, a_line_is_read_as_it_was_written) {
  FindLine line{{}, "request /metadata/ä~1b"};
  line.id.bytes[0] = 0xab;
  line.id.bytes[15] = 1;
  EXPECT_EQ(FindLine::parse(line.text()), line);
  const std::string ref(32, 'a');
  for (const auto& wrong : {std::string(), ref, ref + " ", ref + "x", std::string(32, 'A') + " x",
                            std::string(31, 'a') + "g x", "+" + std::string(31, '1') + " x"}) {
    EXPECT_FALSE(FindLine::parse(wrong)) << wrong;
  }
}

TEST(FindJournals, a_note_is_read_as_it_was_written) {
  const FindNote none;
  EXPECT_EQ(FindNote::parse(none.text()), none);
  const FindNote bare{.is_on = true};
  EXPECT_EQ(FindNote::parse(bare.text()), bare);
  const FindNote all{true, {"/order_id", "/a/0"}, {"/id"}};
  EXPECT_EQ(FindNote::parse(all.text()), all);
  EXPECT_EQ(FindNote::parse(all.text() + "\nlater /x\n"), all) << "of a later version";
  EXPECT_EQ(FindNote::parse(""), none);
}

}  // namespace
}  // namespace idem
