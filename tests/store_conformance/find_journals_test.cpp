#include "core/record/find_journals.hpp"

#include "metrics/shard.hpp"
#include "store_conformance/harness.hpp"
#include "workers/forgetter.hpp"

#include <idem/search_limits.hpp>

/// What a search finds is forgotten with the records, in every store, and not before.
namespace idem::test {
namespace {

class FindJournals : public StoreConformance {
 protected:
  void SetUp() override {
    StoreConformance::SetUp();
    ask(AppendLine{std::string(find_notes), 0, FindNote{true, {"/order_id"}, {}}.text()});
  }

  FindName name(std::string_view value) { return find_name(store().identity().secret, value); }
  std::string journal(StoreTime day, std::string_view value) {
    return find_journal(find_day(day), name(value));
  }
  void index(int record, std::string_view value, StoreTime day) {
    const std::string where = journal(day, value);
    const auto last = ask(ReadLines{where}).last;
    EXPECT_TRUE(
        ask(AppendLine{where, last, FindLine{key(record), "request /order_id"}.text()}).appended);
  }
  /// All days on which this value finds this record.
  std::vector<std::string> days_of(std::string_view value, int record) {
    std::vector<std::string> days;
    std::string after;
    for (;;) {
      const auto listed = ask(ListJournals{std::string(find_journals), after, 1});
      if (listed.empty()) return days;
      const std::string day(day_of_find_journal(listed[0].name));
      for (const auto& line : ask(ReadLines{find_journal(day, name(value))}).lines) {
        const auto parsed = FindLine::parse(line.bytes);
        if (parsed && parsed->id == key(record)) days.push_back(day);
      }
      after = behind_find_day(day);
    }
  }
  /// How many slices it took.
  int forget_all() {
    int slices = 0;
    for (bool more = true; more && slices < 100; ++slices) {
      const auto forgotten = workers::forget_once(store(), shard_, limits::search_forget_slice);
      EXPECT_TRUE(forgotten) << forgotten.error().detail;
      more = forgotten.value_or(false);
    }
    return slices;
  }

  metrics::Shard shard_;
};

INSTANTIATE_TEST_SUITE_P(Stores, FindJournals, every_store(), name_of_store);

TEST_P(FindJournals, of_a_day_that_is_over_go_with_the_records_that_are_gone) {
  const StoreTime today = clock.now();
  index(1, "gone", today);
  index(2, "later", today + 48h);
  EXPECT_EQ(forget_all(), 1);
  EXPECT_EQ(days_of("gone", 1).size(), 1U) << "its day is not over";
  clock.advance(24h);
  forget_all();
  EXPECT_TRUE(days_of("gone", 1).empty());
  EXPECT_EQ(days_of("later", 2), std::vector{find_day(today + 48h)});
}

TEST_P(FindJournals, keep_a_record_that_is_still_unknown) {
  const StoreTime today = clock.now();
  const Execute lost = run(1);
  EXPECT_EQ(ask(a_mark_unknown(lost)).verdict, Verdict::done);
  index(1, "order", today);
  index(2, "order", today);  // Has no record.
  clock.advance(24h);
  forget_all();
  const auto days = days_of("order", 1);
  ASSERT_EQ(days.size(), 1U);
  EXPECT_EQ(days[0], find_day(clock.now() + retention + tombstone));
  EXPECT_TRUE(days_of("order", 2).empty());
  // And again, for as long as it takes.
  clock.advance(retention + tombstone + 24h);
  forget_all();
  EXPECT_EQ(days_of("order", 1).size(), 1U);
  EXPECT_EQ(state(1), State::unknown);
}

TEST_P(FindJournals, keep_a_completed_record_until_its_tombstone_ends) {
  const StoreTime today = clock.now();
  const Execute ran = run(1);
  EXPECT_EQ(ask(a_complete(ran)).verdict, Verdict::done);
  index(1, "order", today);
  clock.advance(24h);
  forget_all();
  EXPECT_EQ(days_of("order", 1), std::vector{find_day(today + retention + tombstone)});
  clock.advance(retention + tombstone + 24h);
  while (!reap().empty()) {
  }
  EXPECT_EQ(state(1), std::nullopt);
  forget_all();
  EXPECT_TRUE(days_of("order", 1).empty());
}

TEST_P(FindJournals, go_in_slices) {
  const StoreTime today = clock.now();
  const int many = static_cast<int>(limits::search_forget_slice) * 2 + 3;
  for (int i = 0; i < many; ++i) index(i, "order-" + std::to_string(i), today);
  clock.advance(24h);
  EXPECT_EQ(forget_all(), 3);
  EXPECT_TRUE(ask(ListJournals{std::string(find_journals)}).empty());
}

TEST_P(FindJournals, are_not_looked_for_where_nothing_was_ever_indexed) {
  const auto other = open_another("other");
  ASSERT_NE(other, nullptr);
  const auto forgotten = workers::forget_once(*other, shard_, limits::search_forget_slice);
  ASSERT_TRUE(forgotten) << forgotten.error().detail;
  EXPECT_FALSE(*forgotten);
}

}  // namespace
}  // namespace idem::test
