#include "store/log/ids/id_table.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <random>

/// The table of ids: what it finds, and what it does with damage and with what a crash left.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using segments::IdEntry;
using segments::IdTable;
using segments::Merge;
using segments::MergePlan;
using segments::SortedRun;
using segments::SortedRunWriter;

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put_content(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class SortedRuns : public testing::Test {
 protected:
  using Model = std::map<RecordId, IdEntry>;

  RecordId random_id() {
    RecordId id;
    for (std::uint8_t& byte : id.bytes) byte = static_cast<std::uint8_t>(random_());
    return id;
  }
  IdEntry entry_of(const RecordId& id) {
    return {id, random_() | 1U, static_cast<std::uint32_t>(random_()), State::completed};
  }
  Model random_entries(std::size_t count) {
    Model model;
    while (model.size() < count) {
      const RecordId id = random_id();
      model.emplace(id, entry_of(id));
    }
    return model;
  }
  std::string path(std::uint32_t number) const { return folder_.file(fmt::format("{}", number)); }
  void write(std::uint32_t number, const Model& model) const {
    SortedRunWriter writer(path(number), number, model.size());
    for (const auto& [id, entry] : model) writer.append(entry);
    ASSERT_EQ(writer.finish(), 0);
  }
  std::shared_ptr<const SortedRun> open(std::uint32_t number, bool with_filter = true) {
    auto run = SortedRun::open(path(number), number, with_filter);
    EXPECT_TRUE(run) << run.error();
    return run ? *run : nullptr;
  }
  static void expect_all(const SortedRun& run, const Model& model) {
    for (const auto& [id, entry] : model) {
      IdEntry found;
      ASSERT_TRUE(run.may_have(id));
      ASSERT_EQ(run.find(id, found), SortedRun::Found::yes);
      ASSERT_EQ(found, entry);
    }
  }
  static std::vector<IdEntry> listed(std::shared_ptr<const SortedRun> run, const RecordId& from,
                                     std::size_t pages) {
    std::vector<IdEntry> entries;
    SortedRun::Cursor cursor(std::move(run), from, pages, false);
    for (; !cursor.is_at_end(); cursor.advance()) entries.push_back(cursor.entry());
    EXPECT_FALSE(cursor.has_damage());
    return entries;
  }

  TempFolder folder_;
  std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};

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

TEST(MergePlan, all_become_one_once_many_entries_are_stale) {
  using segments::plan_merge;
  using segments::RunSize;
  const std::vector<RunSize> runs{{400, true}, {10'000, true}};
  EXPECT_FALSE(plan_merge(runs, 100, 10'000));
  EXPECT_EQ(plan_merge(runs, 100, 5'000), (MergePlan{0, 2}));
  EXPECT_FALSE(plan_merge(std::vector<RunSize>{{10'000, true}}, 100, 5'000));
}

/// Beside a model, and a list of what was applied: what a start would find in the log.
class Ids : public SortedRuns {
 protected:
  std::string where() const { return folder_.file("ids"); }
  std::string open_table() {
    table_ = std::make_unique<IdTable>(where(), sizes_);
    const auto opened = table_->open(tag_);
    if (!opened) return opened.error();
    const std::uint64_t saved = table_->saved_to();
    for (std::size_t i = saved; i < applied_.size(); ++i) table_->apply(applied_[i], i + 1);
    return "opened";
  }
  void apply(std::vector<IdEntry> entries) {
    for (const IdEntry& entry : entries) {
      if (entry.is_gone()) {
        model_.erase(entry.id);
      } else {
        model_.insert_or_assign(entry.id, entry);
      }
    }
    applied_.push_back(std::move(entries));
    table_->note_live(model_.size());
    table_->apply(applied_.back(), applied_.size());
  }
  RecordId known_id() {
    const auto at = model_.lower_bound(random_id());
    return at == model_.end() ? random_id() : at->first;
  }
  /// New ids, new places of known ones, and some that are gone.
  void apply_some(std::size_t count) {
    std::vector<IdEntry> entries;
    for (std::size_t i = 0; i < count; ++i) {
      IdEntry entry = entry_of(random_() % 4 == 0 ? known_id() : random_id());
      if (random_() % 8 == 0) entry = {.id = known_id()};
      entries.push_back(entry);
    }
    apply(std::move(entries));
  }
  void expect_model() {
    for (const auto& [id, entry] : model_) {
      const auto found = table_->find(id);
      ASSERT_TRUE(found);
      ASSERT_EQ(*found, entry);
    }
    for (int i = 0; i < 200; ++i) {
      const RecordId id = random_id();
      const auto found = table_->find(id);
      ASSERT_TRUE(found);
      ASSERT_EQ(found->is_gone(), !model_.contains(id));
    }
    std::vector<IdEntry> all;
    std::optional<RecordId> after;
    do {
      const auto slice = table_->slice(after, 1 + random_() % 300);
      ASSERT_FALSE(slice.has_damage);
      all.insert(all.end(), slice.entries.begin(), slice.entries.end());
      ASSERT_TRUE(!slice.after || slice.after != after);
      after = slice.after;
    } while (after);
    std::vector<IdEntry> expected;
    for (const auto& [id, entry] : model_) expected.push_back(entry);
    ASSERT_EQ(all, expected);
  }
  std::size_t files() const {
    const auto is_run = [](const auto& file) { return file.path().extension() == ".ids"; };
    return static_cast<std::size_t>(std::ranges::count_if(fs::directory_iterator(where()), is_run));
  }
  std::uintmax_t bytes() const {
    std::uintmax_t sum = 0;
    for (const auto& file : fs::directory_iterator(where())) {
      std::error_code code;
      const auto size = fs::file_size(file, code);
      if (!code) sum += size;
    }
    return sum;
  }

  IdTable::Sizes sizes_{.memtable_entries = 100, .cache_bytes = 4'000};
  segments::StoreTag tag_{1, 2, 3};
  std::unique_ptr<IdTable> table_;
  Model model_;
  std::vector<std::vector<IdEntry>> applied_;
};

TEST_F(Ids, have_what_was_applied_beside_merges_and_starts) {
  ASSERT_EQ(open_table(), "opened");
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 20; ++i) apply_some(1 + random_() % 60);
    ASSERT_NO_FATAL_FAILURE(expect_model());
    if (round % 4 == 3) table_->save();
    if (round % 3 != 2) continue;
    const std::uint64_t saved = table_->saved_to();
    ASSERT_EQ(open_table(), "opened");
    ASSERT_GE(table_->saved_to(), saved);
    ASSERT_NO_FATAL_FAILURE(expect_model());
  }
  table_->save();
  EXPECT_EQ(table_->saved_to(), applied_.size());
  applied_.assign(applied_.size(), {});  // All of it is in files.
  ASSERT_EQ(open_table(), "opened");
  ASSERT_NO_FATAL_FAILURE(expect_model());
}

TEST_F(Ids, commits_without_entries_are_saved) {
  ASSERT_EQ(open_table(), "opened");
  apply({});
  table_->save();
  EXPECT_EQ(table_->saved_to(), 1);
  EXPECT_EQ(files(), 0);
}

TEST_F(Ids, of_records_that_are_gone_leave_the_disk) {
  ASSERT_EQ(open_table(), "opened");
  for (int i = 0; i < 60; ++i) apply_some(100);
  while (!model_.empty()) {
    std::vector<IdEntry> gone;
    for (const auto& [id, entry] : model_) {
      if (gone.size() < 100) gone.push_back({.id = id});
    }
    apply(std::move(gone));
  }
  // Merges come to an end on a thread of their own: each new run lets them go on.
  for (int i = 0; i < 1'000 && bytes() > 60'000; ++i) {
    apply({entry_of(random_id())});
    table_->save();
  }
  EXPECT_LE(bytes(), 60'000);
  ASSERT_NO_FATAL_FAILURE(expect_model());
}

TEST_F(Ids, T16_files_that_a_crash_left_are_deleted) {
  ASSERT_EQ(open_table(), "opened");
  apply_some(300);
  table_->save();
  table_.reset();
  const std::size_t before = files();
  put_content(where() + "/00000099.ids", "half of a run");
  put_content(where() + "/runs.part", "half of a list");
  ASSERT_EQ(open_table(), "opened");
  EXPECT_EQ(files(), before);
  ASSERT_NO_FATAL_FAILURE(expect_model());
}

TEST_F(Ids, T01_what_is_damaged_or_of_another_store_is_refused) {
  ASSERT_EQ(open_table(), "opened");
  apply_some(300);
  table_->save();
  table_.reset();
  tag_ = {4, 5, 6};
  EXPECT_NE(open_table().find("of another store"), std::string::npos);
  tag_ = {1, 2, 3};
  const std::string runs = content_of(where() + "/runs");
  for (std::size_t at = 0; at < runs.size(); ++at) {
    std::string damaged = runs;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    put_content(where() + "/runs", damaged);
    EXPECT_NE(open_table().find("runs is damaged"), std::string::npos) << at;
  }
  put_content(where() + "/runs", runs);
  for (const auto& file : fs::directory_iterator(where())) {
    if (file.path().extension() == ".ids") fs::rename(file, file.path().string() + ".away");
  }
  EXPECT_NE(open_table().find("cannot be read"), std::string::npos);
}

TEST_F(Ids, T01_beside_a_damaged_page_are_found_and_no_id_is_taken_for_new) {
  ASSERT_EQ(open_table(), "opened");
  apply_some(3'000);
  table_->save();
  table_.reset();
  applied_.assign(applied_.size(), {});
  std::string largest;
  for (const auto& file : fs::directory_iterator(where())) {
    const bool is_larger = largest.empty() || fs::file_size(file) > fs::file_size(largest);
    if (file.path().extension() == ".ids" && is_larger) largest = file.path();
  }
  // Behind the filter, before the first ids of the pages.
  std::string bytes = content_of(largest);
  bytes[bytes.size() * 2 / 3] = static_cast<char>(bytes[bytes.size() * 2 / 3] ^ 1);
  put_content(largest, bytes);
  ASSERT_EQ(open_table(), "opened");
  const Model before = model_;
  for (int i = 0; i < 30; ++i) apply_some(100);
  table_->save();
  std::size_t damaged = 0;
  for (const auto& [id, entry] : model_) {
    const auto found = table_->find(id);
    damaged += found ? 0 : 1;
    ASSERT_TRUE(!found || *found == entry);
  }
  EXPECT_GT(damaged, 0);
  EXPECT_LT(damaged, 36);
  EXPECT_TRUE(table_->slice({}, before.size() + model_.size()).has_damage);
}

}  // namespace
}  // namespace idem::test
