#include "core/record/sealed_parts.hpp"
#include "store_conformance/asking.hpp"

#include <idem/limits.hpp>

#include <latch>
#include <thread>

/// Lists of lines by name, in every store.
namespace idem::test {
namespace {

class Journal : public StoreConformance {
 protected:
  AppendLine::Reply append(std::uint64_t behind, std::string line,
                           const std::string& journal = "audit") {
    return ask(AppendLine{journal, behind, std::move(line)});
  }
  /// The bytes of all lines behind `after`; each of them undamaged, with the numbers in order.
  std::vector<std::string> lines(const std::string& journal = "audit", std::uint64_t after = 0,
                                 std::size_t limit = 100) {
    const ReadLines::Reply read = ask(ReadLines{journal, after, limit});
    std::vector<std::string> bytes;
    for (const JournalLine& line : read.lines) {
      EXPECT_EQ(line.seq, ++after);
      EXPECT_FALSE(line.is_damaged);
      bytes.push_back(line.bytes);
    }
    return bytes;
  }
  /// What is listed, without what encryption adds to each line; the audit is in clear.
  std::vector<JournalSummary> list(ListJournals verb = {}) {
    auto listed = ask(std::move(verb));
    for (JournalSummary& one : listed) {
      if (one.name != "audit") one.bytes -= one.last * extra_;
    }
    return listed;
  }
  const bool is_encrypted_ = GetParam().starts_with("sealed_") || GetParam().starts_with("scoped_");
  const std::size_t extra_ = is_encrypted_ ? sealed_line_extra_bytes : 0;

  template <class Verb>
  std::optional<StoreError::Code> refusal(Verb verb) {
    const auto reply = try_ask(std::move(verb));
    return reply ? std::nullopt : std::optional(reply.error().code);
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, Journal, every_store(), name_of_store);

using Lines = std::vector<std::string>;
using Journals = std::vector<JournalSummary>;

TEST_P(Journal, a_line_is_appended_only_behind_the_last_one) {
  EXPECT_EQ(ask(ReadLines{"audit"}).last, 0U);
  EXPECT_EQ(append(1, "no"), (AppendLine::Reply{false, 0, clock.now()}));
  EXPECT_EQ(append(0, "one"), (AppendLine::Reply{true, 1, clock.now()}));
  clock.advance(5s);
  EXPECT_EQ(append(0, "no"), (AppendLine::Reply{false, 1, clock.now()}));
  const std::string any("two\0\xff\n ", 7);
  EXPECT_EQ(append(1, any), (AppendLine::Reply{true, 2, clock.now()}));
  EXPECT_EQ(append(2, ""), (AppendLine::Reply{true, 3, clock.now()}));
  EXPECT_EQ(append(9, "no"), (AppendLine::Reply{false, 3, clock.now()}));
  EXPECT_EQ(lines(), (Lines{"one", any, ""}));
  EXPECT_EQ(lines("audit", 1), (Lines{any, ""}));
  EXPECT_EQ(lines("audit", 0, 1), (Lines{"one"}));
  EXPECT_EQ(lines("audit", 3), Lines{});
  EXPECT_EQ(lines("audit", 99), Lines{});
  const ReadLines::Reply read = ask(ReadLines{"audit", 0, 2});
  EXPECT_EQ(read.last, 3U);
  EXPECT_EQ(read.now, clock.now());
  ASSERT_EQ(read.lines.size(), 2U);
  EXPECT_EQ(read.lines[0].at, clock.now() - 5s);
  EXPECT_EQ(read.lines[1].at, clock.now());
}

TEST_P(Journal, P2_lines_are_there_at_the_next_opening) {
  if (!is_durable()) GTEST_SKIP() << "it keeps nothing";
  append(0, "one");
  append(1, "two");
  append(0, "other", "jobs/1");
  const ReadLines::Reply before = ask(ReadLines{"audit"});
  reopen();
  EXPECT_EQ(ask(ReadLines{"audit"}), before);
  EXPECT_EQ(append(2, "three").last, 3U);
  EXPECT_EQ(list(), (Journals{{"audit", 3, 11}, {"jobs/1", 1, 5}}));
}

TEST_P(Journal, a_listing_pages_through_the_names_in_the_order_of_their_bytes) {
  EXPECT_EQ(ask(ListJournals{}), Journals{});
  for (const std::string name : {"jobs/2", "b", "jobs/10", "Jobs", "jobs/1", "a"}) {
    append(0, name, name);
  }
  append(1, "more", "jobs/2");
  const Journals jobs{{"jobs/1", 1, 6}, {"jobs/10", 1, 7}, {"jobs/2", 2, 10}};
  EXPECT_EQ(list({"jobs/"}), jobs);
  EXPECT_EQ(list({"jobs/", "", 2}), Journals(jobs.begin(), jobs.begin() + 2));
  EXPECT_EQ(list({"jobs/", "jobs/10", 2}), Journals(jobs.begin() + 2, jobs.end()));
  EXPECT_EQ(ask(ListJournals{"jobs/", "jobs/2"}), Journals{});
  EXPECT_EQ(ask(ListJournals{"", "", 0}), Journals{});
  EXPECT_EQ(ask(ListJournals{"z"}), Journals{});
  std::vector<std::string> all;
  for (const JournalSummary& one : ask(ListJournals{})) all.push_back(one.name);
  EXPECT_EQ(all, (Lines{"Jobs", "a", "b", "jobs/1", "jobs/10", "jobs/2"}));
}

TEST_P(Journal, is_dropped_whole_and_only_as_its_caller_knows_it) {
  append(0, "one", "jobs/1");
  append(1, "two", "jobs/1");
  append(0, "other", "jobs/11");
  EXPECT_EQ(ask(DropJournal{"jobs/1", 1}), (DropJournal::Reply{false, 2}));
  EXPECT_EQ(ask(DropJournal{"jobs/1", 0}), (DropJournal::Reply{false, 2}));
  EXPECT_EQ(lines("jobs/1").size(), 2U);
  EXPECT_EQ(ask(DropJournal{"jobs/1", 2}), (DropJournal::Reply{true, 0}));
  EXPECT_EQ(lines("jobs/1"), Lines{});
  EXPECT_EQ(list(), (Journals{{"jobs/11", 1, 5}}));
  EXPECT_EQ(ask(DropJournal{"jobs/1", 2}), (DropJournal::Reply{false, 0}));
  EXPECT_EQ(ask(DropJournal{"jobs/1", 0}), (DropJournal::Reply{true, 0}));
  EXPECT_FALSE(append(2, "late", "jobs/1").appended);
  EXPECT_EQ(append(0, "anew", "jobs/1").last, 1U);
}

TEST_P(Journal, S19_the_audit_is_never_dropped) {
  append(0, "one");
  append(0, "one", "audit/more");
  EXPECT_EQ(refusal(DropJournal{"audit", 1}), StoreError::Code::refused);
  EXPECT_EQ(refusal(DropJournal{"audit/more", 1}), StoreError::Code::refused);
  EXPECT_EQ(lines(), Lines{"one"});
}

TEST_P(Journal, what_is_too_long_or_no_name_is_refused) {
  const std::string longest(limits::journal_name_bytes_max, 'n');
  const std::size_t most = limits::journal_line_bytes_max - extra_;
  EXPECT_TRUE(append(0, std::string(most, 'x'), longest).appended);
  EXPECT_EQ(lines(longest).at(0).size(), most);
  EXPECT_EQ(refusal(AppendLine{"j", 0, std::string(most + 1, 'x')}), StoreError::Code::refused);
  for (const std::string& name :
       {std::string(), longest + "n", std::string("a b"), std::string("a\nb"),
        std::string("a\0b", 3), std::string("\xc3\xa4"), std::string("a\\b")}) {
    EXPECT_EQ(refusal(AppendLine{name, 0, "x"}), StoreError::Code::refused) << name;
    EXPECT_EQ(refusal(ReadLines{name}), StoreError::Code::refused) << name;
    EXPECT_EQ(refusal(DropJournal{name, 0}), StoreError::Code::refused) << name;
    EXPECT_EQ(refusal(ListJournals{name, "a"}).has_value(), !name.empty()) << name;
  }
  EXPECT_EQ(refusal(AppendLine{"j", std::uint64_t{1} << 62, "x"}), StoreError::Code::refused);
  EXPECT_EQ(refusal(ReadLines{"j", UINT64_MAX}), StoreError::Code::refused);
  EXPECT_EQ(ask(ListJournals{}).size(), 1U);
}

TEST_P(Journal, a_reply_stops_at_its_bounds_and_goes_on_from_there) {
  constexpr std::size_t whole = limits::journal_line_bytes_max;
  constexpr std::size_t fit = limits::journal_read_bytes_max / whole;
  for (std::size_t n = 0; n < fit + 3; ++n) append(n, std::string(whole, 'x'));
  EXPECT_EQ(lines("audit", 0, 1'000'000).size(), fit);
  EXPECT_EQ(lines("audit", fit, 1'000'000).size(), 3U);
  EXPECT_EQ(lines("audit", 0, 0), Lines{});
  EXPECT_EQ(ask(ReadLines{"audit", 0, 0}).last, fit + 3);
}

// Each number is one appender's, also where the two are processes with connections of their own.
TEST_P(Journal, of_two_appenders_one_gets_each_number) {
  constexpr int each = 60;
  const bool is_shared = serves_several_processes(GetParam());
  const auto second = is_shared ? open_another("idem.db") : nullptr;
  std::latch both(2);
  const auto append_all = [&](Store& to, const std::string& who) {
    both.arrive_and_wait();
    std::uint64_t last = 0;
    for (int n = 0; n < each;) {
      const auto reply = test::try_ask(to, AppendLine{"audit", last, who + std::to_string(n)});
      ASSERT_TRUE(reply) << reply.error().detail;
      last = reply->last;
      if (reply->appended) ++n;
    }
  };
  std::thread other([&] { append_all(second ? *second : store(), "b"); });
  append_all(store(), "a");
  other.join();
  const auto all = lines("audit", 0, 1'000);
  ASSERT_EQ(all.size(), 2U * each);
  int next_a = 0;
  int next_b = 0;
  for (const std::string& line : all) {
    int& next = line[0] == 'a' ? next_a : next_b;
    EXPECT_EQ(line.substr(1), std::to_string(next++));
  }
}

TEST_P(Journal, an_append_and_a_drop_leave_no_gap) {
  const bool is_shared = serves_several_processes(GetParam());
  const auto second = is_shared ? open_another("idem.db") : nullptr;
  Store& dropper = second ? *second : store();
  for (int round = 0; round < 20; ++round) {
    std::latch both(2);
    std::thread other([&] {
      both.arrive_and_wait();
      const auto end = test::try_ask(dropper, ReadLines{"jobs", 0, 0});
      ASSERT_TRUE(end);
      EXPECT_TRUE(test::try_ask(dropper, DropJournal{"jobs", end->last}));
    });
    both.arrive_and_wait();
    std::uint64_t last = 0;
    for (int n = 0; n < 5; ++n) {
      last = ask(AppendLine{"jobs", last, "line"}).last;
    }
    other.join();
    const ReadLines::Reply read = ask(ReadLines{"jobs"});
    EXPECT_EQ(read.lines.size(), read.last);
  }
}

}  // namespace
}  // namespace idem::test
