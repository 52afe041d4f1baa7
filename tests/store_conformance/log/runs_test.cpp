#include "store_conformance/log/runs.hpp"
#include "store/log/ids/page.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

/// Sorted runs of ids: what they find, what damage does, and which are merged.
namespace idem::test {
namespace {

TEST_F(SortedRuns, each_entry_is_found_and_no_other) {
  for (const std::size_t count : {0U, 1U, 34U, 35U, 36U, 5'000U}) {
    const Model model = random_entries(count);
    write(1, model);
    for (const bool filter : {false, true}) {
      const auto run = open(1, filter);
      ASSERT_TRUE(run);
      EXPECT_EQ(run->entries(), count);
      expect_all(*run, model);
      std::size_t passed = 0;
      for (int i = 0; i < 2'000; ++i) {
        IdEntry found;
        const RecordId id = random_id();
        passed += run->may_have(id) ? 1 : 0;
        ASSERT_EQ(run->find(id, found), SortedRun::Found::no);
      }
      if (!filter) {
        EXPECT_EQ(passed, 2'000);
      } else if (count == 5'000) {
        EXPECT_LT(passed, 100);
      }
    }
  }
}

// Ids that begin alike, as an attacker could choose keys for, fill several pages.
TEST_F(SortedRuns, ids_that_begin_alike_are_found) {
  Model model = random_entries(300);
  for (const std::size_t alike : {4U, 8U, 15U}) {
    const RecordId begin = random_id();
    for (int i = 0; i < 200; ++i) {
      RecordId id = random_id();
      std::copy_n(begin.bytes.begin(), alike, id.bytes.begin());
      model.insert_or_assign(id, entry_of(id));
    }
  }
  write(1, model);
  const auto run = open(1);
  ASSERT_TRUE(run);
  expect_all(*run, model);
  for (const auto& [id, entry] : model) {
    RecordId other = id;
    other.bytes.back() ^= 0x40U;
    IdEntry found;
    const auto expected = model.contains(other) ? SortedRun::Found::yes : SortedRun::Found::no;
    ASSERT_EQ(run->find(other, found), expected);
  }
}

TEST_F(SortedRuns, a_part_is_listed_in_order) {
  const Model model = random_entries(1'000);
  write(1, model);
  for (const std::size_t pages : {1U, 3U, 64U}) {
    for (int i = 0; i < 20; ++i) {
      const RecordId from = i == 0 ? RecordId{} : random_id();
      std::vector<IdEntry> expected;
      for (auto at = model.lower_bound(from); at != model.end(); ++at) {
        expected.push_back(at->second);
      }
      ASSERT_EQ(listed(open(1), from, pages), expected);
    }
  }
}

// An id that a damaged page hid would run again.
TEST_F(SortedRuns, T01_no_damaged_byte_hides_an_entry) {
  const Model model = random_entries(500);
  write(1, model);
  const std::string whole = content_of(path(1));
  int refused = 0;
  int found_damaged = 0;
  for (int i = 0; i < 400; ++i) {
    std::string damaged = whole;
    const std::size_t at = random_() % damaged.size();
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << random_() % 8);
    if (i % 20 == 0) damaged.resize(at);
    put_content(path(1), damaged);
    const auto run = SortedRun::open(path(1), 1, true);
    if (!run) {
      ++refused;
      continue;
    }
    for (const auto& [id, entry] : model) {
      IdEntry found;
      ASSERT_TRUE((*run)->may_have(id)) << "byte " << at;
      const auto how = (*run)->find(id, found);
      ASSERT_NE(how, SortedRun::Found::no) << "byte " << at;
      ASSERT_TRUE(how == SortedRun::Found::damaged || found == entry) << "byte " << at;
      found_damaged += how == SortedRun::Found::damaged ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(found_damaged, 0);
}

TEST_F(SortedRuns, T01_a_page_does_not_stand_for_another_one) {
  const Model model = random_entries(500);
  write(1, model);
  const std::string whole = content_of(path(1));
  constexpr std::size_t page = segments::page_bytes;
  for (std::size_t at = 0; at + 2 * page <= whole.size(); at += page) {
    put_content(path(1), std::string(whole).replace(at, page, whole, at + page, page));
    const auto run = SortedRun::open(path(1), 1, true);
    if (!run) continue;
    for (const auto& [id, entry] : model) {
      IdEntry found;
      ASSERT_NE((*run)->find(id, found), SortedRun::Found::no);
    }
  }
  // Of another file.
  put_content(path(2), whole);
  EXPECT_FALSE(SortedRun::open(path(2), 2, false));
}

TEST_F(SortedRuns, a_merge_keeps_the_newest_of_each_id) {
  Model newest = random_entries(700);
  Model oldest = random_entries(900);
  Model expected;
  int i = 0;
  for (auto& [id, entry] : newest) {
    if (++i % 3 == 0) oldest.insert_or_assign(id, entry_of(id));
    if (i % 7 == 0) entry.place = 0;
  }
  for (const auto& [id, entry] : newest) expected.emplace(id, entry);
  for (const auto& [id, entry] : oldest) expected.emplace(id, entry);
  write(1, oldest);
  write(2, newest);
  for (const bool drops : {false, true}) {
    Merge merge({open(2), open(1)}, drops, path(3), 3);
    auto state = Merge::State::goes_on;
    for (int steps = 0; state == Merge::State::goes_on && steps < 1'000; ++steps) {
      state = merge.step(10);
    }
    ASSERT_EQ(state, Merge::State::done);
    Model kept = expected;
    if (drops) std::erase_if(kept, [](const auto& one) { return one.second.is_gone(); });
    const auto run = open(3);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->entries(), kept.size());
    expect_all(*run, kept);
  }
}

TEST_F(SortedRuns, T01_a_merge_ends_at_a_damaged_page) {
  write(1, random_entries(500));
  write(2, random_entries(500));
  std::string bytes = content_of(path(1));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  put_content(path(1), bytes);
  Merge merge({open(2), open(1)}, true, path(3), 3);
  EXPECT_EQ(merge.step(10'000), Merge::State::failed);
  EXPECT_EQ(merge.damaged(), std::vector<std::uint32_t>{1});
}

TEST_F(SortedRuns, T01_a_file_that_another_one_replaced_is_damaged) {
  const Model model = random_entries(500);
  write(1, model);
  const auto run = open(1);
  write(1, random_entries(500));
  std::size_t damaged = 0;
  for (const auto& [id, entry] : model) {
    IdEntry found;
    const auto how = run->find(id, found);
    ASSERT_NE(how, SortedRun::Found::no);
    damaged += how == SortedRun::Found::damaged ? 1 : 0;
  }
  EXPECT_EQ(damaged, model.size());
}

TEST(MergePlan, four_runs_of_one_size_become_one) {
  const auto plan = [](const std::vector<std::uint64_t>& sizes, std::uint64_t live = 1'000'000) {
    std::vector<segments::RunSize> runs;
    for (const std::uint64_t size : sizes) runs.push_back({size, true});
    return segments::plan_merge(runs, 100, live);
  };
  EXPECT_FALSE(plan({}));
  EXPECT_FALSE(plan({100, 100, 100}));
  EXPECT_EQ(plan({100, 100, 100, 100}), (MergePlan{0, 4}));
  EXPECT_EQ(plan({1, 100, 3, 100}), (MergePlan{0, 4}));
  EXPECT_FALSE(plan({100, 100, 100, 400, 400, 400, 1'600}));
  EXPECT_EQ(plan({100, 100, 400, 390, 350, 400, 1'600}), (MergePlan{2, 4}));
  // One that became small under larger ones is merged as one of them.
  EXPECT_EQ(plan({100, 400, 400, 10, 400}), (MergePlan{1, 4}));
}

TEST(MergePlan, runs_that_are_not_free_stay_apart) {
  using segments::plan_merge;
  using segments::RunSize;
  const std::vector<RunSize> split{{100, true}, {100, true}, {100, false},
                                   {100, true}, {100, true}, {100, true}};
  EXPECT_FALSE(plan_merge(split, 100, 1'000'000));
  const std::vector<RunSize> behind{{100, true}, {100, false}, {100, true},
                                    {100, true}, {100, true},  {100, true}};
  EXPECT_EQ(plan_merge(behind, 100, 1'000'000), (MergePlan{2, 4}));
  EXPECT_FALSE(plan_merge(std::vector<RunSize>{{9'000, true}, {9'000, false}}, 100, 0));
}

// The kernel tells of it once; a sync behind that says nothing.
TEST(RunPages, a_slice_that_cannot_be_brought_to_the_disk_is_an_error) {
  const int null =
      ::open("/dev/null", O_WRONLY | O_CLOEXEC);  // Writes go there, and slices do not.
  ASSERT_GE(null, 0);
  segments::PageWriter out(null, 1, 0);
  for (int i = 0; i < 200; ++i) (void)out.next_page();
  EXPECT_EQ(out.error(), 0);
  for (int i = 0; i < 400; ++i) (void)out.next_page();
  out.flush();
  EXPECT_EQ(out.error(), ESPIPE);
  ::close(null);
}

TEST(MergePlan, all_become_one_once_many_entries_are_stale) {
  using segments::plan_merge;
  using segments::RunSize;
  const std::vector<RunSize> runs{{400, true}, {10'000, true}};
  EXPECT_FALSE(plan_merge(runs, 100, 10'000));
  EXPECT_EQ(plan_merge(runs, 100, 5'000), (MergePlan{0, 2}));
  EXPECT_FALSE(plan_merge(std::vector<RunSize>{{10'000, true}}, 100, 5'000));
}

}  // namespace
}  // namespace idem::test
