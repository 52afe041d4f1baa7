#include "store/log/ids/id_table.hpp"
#include "store_conformance/log/runs.hpp"

/// The table of ids: what it finds, and what it does with damage and with what a crash left.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using segments::IdTable;

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
    table_->start();
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

// A process whose store was moved away may go on for a while.
TEST_F(Ids, T01_files_of_another_store_at_the_path_stay) {
  ASSERT_EQ(open_table(), "opened");
  apply_some(300);
  table_->save();
  const auto moved = std::exchange(table_, nullptr);
  fs::rename(where(), where() + ".moved");
  const auto applied_before = std::exchange(applied_, {});
  const Model of_moved = std::exchange(model_, {});
  ASSERT_EQ(open_table(), "opened");
  apply_some(300);
  table_->save();
  std::vector<IdEntry> more;
  for (int i = 0; i < 150; ++i) more.push_back(entry_of(random_id()));
  moved->apply(more, applied_before.size() + 1);
  ASSERT_EQ(open_table(), "opened");
  ASSERT_NO_FATAL_FAILURE(expect_model());
  EXPECT_LE(moved->saved_to(), applied_before.size());
  fs::rename(where(), where() + ".other");
  fs::rename(where() + ".moved", where());
  moved->save();
  for (const auto& [id, entry] : of_moved) EXPECT_EQ(*moved->find(id), entry);
}

// Killed before its first list of runs was written.
TEST_F(Ids, T16_a_first_run_that_a_crash_left_is_deleted) {
  ASSERT_EQ(open_table(), "opened");
  table_.reset();
  write(1, random_entries(10));
  fs::rename(path(1), where() + "/00000001.ids");
  ASSERT_EQ(open_table(), "opened");
  EXPECT_EQ(files(), 0);
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
  fs::remove(where() + "/runs");
  const std::size_t before = files();
  EXPECT_NE(open_table().find("runs is missing"), std::string::npos);
  EXPECT_EQ(files(), before) << "nothing is deleted";
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
