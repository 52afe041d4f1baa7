#include "store/embedded/id_index.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace idem::test {
namespace {

using embedded::IdIndex;
using Entry = IdIndex::Entry;

std::vector<Entry> all_of(const IdIndex& index) {
  std::vector<Entry> all;
  for (auto at = index.first_from(0); at; at = index.next(*at)) all.push_back(*at);
  return all;
}

TEST(IdIndex, the_head_orders_as_the_ids_do) {
  RecordId low;
  RecordId high;
  low.bytes = {0x01, 0xff, 0, 0, 0, 0, 0, 0, 9};
  high.bytes = {0x02, 0x00, 0, 0, 0, 0, 0, 1, 0};
  EXPECT_EQ(IdIndex::head_of(low), 0x01ff000000000000u);
  EXPECT_EQ(IdIndex::head_of(high), 0x0200000000000001u);
}

TEST(IdIndex, ids_that_begin_alike_are_all_found) {
  IdIndex index;
  for (const std::int64_t place : {7, 3, 5}) index.insert({42, place});
  index.insert({41, 1});
  index.insert({43, 2});
  EXPECT_EQ(index.first_from(42), (Entry{42, 3}));
  EXPECT_EQ(index.next({42, 3}), (Entry{42, 5}));
  index.erase({42, 5});
  EXPECT_EQ(index.next({42, 3}), (Entry{42, 7}));
  EXPECT_EQ(index.next({42, 7}), (Entry{43, 2}));
  EXPECT_EQ(index.next({43, 2}), std::nullopt);
}

// Against an ordered set, through splits, emptied blocks and joins; from nothing and from a file.
TEST(IdIndex, it_behaves_as_an_ordered_set) {
  for (const std::size_t begun_with : {0, 1, 5'000}) {
    std::mt19937_64 random(begun_with + 1);
    std::set<Entry> expected;
    // Few heads, so that many are alike.
    const auto any = [&] {
      return Entry{random() % 3'000 << 50, static_cast<std::int64_t>(random() % 40)};
    };
    while (expected.size() < begun_with) expected.insert(any());
    IdIndex index(std::vector<Entry>(expected.rbegin(), expected.rend()));
    for (const int inserts_of_ten : {8, 2, 9, 0}) {
      for (int step = 0; step < 30'000; ++step) {
        const Entry entry = any();
        const auto at = expected.lower_bound(entry);
        const bool there = at != expected.end() && *at == entry;
        if (there && static_cast<int>(random() % 10) >= inserts_of_ten) {
          index.erase(entry);
          expected.erase(at);
        } else if (!there && static_cast<int>(random() % 10) < inserts_of_ten) {
          index.insert(entry);
          expected.insert(entry);
        } else {
          const auto next = expected.upper_bound(entry);
          EXPECT_EQ(index.next(entry),
                    next == expected.end() ? std::nullopt : std::optional(*next));
        }
      }
      ASSERT_EQ(index.size(), expected.size());
      ASSERT_EQ(all_of(index), std::vector<Entry>(expected.begin(), expected.end()));
    }
  }
}

}  // namespace
}  // namespace idem::test
