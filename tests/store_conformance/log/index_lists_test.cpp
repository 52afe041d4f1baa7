#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store/log/database.hpp"
#include "store/log/index_options.hpp"
#include "store/log/look.hpp"
#include "store/log/reindex_store.hpp"
#include "store_conformance/log/index_damage.hpp"

#include <rocksdb/db.h>

/// RocksDB's list of the index's files, when it is older, cut, or ends within a repair.
namespace idem::test {
namespace {

enum class CutOff : std::uint8_t { after_the_drop, within_the_making };

/// Leaves what a process leaves that is killed while it makes a family anew.
void cut_a_repair_off(const std::string& path, CutOff where) {
  const LogSizes sizes;
  {
    segments::RunningSection running;
    const auto db = segments::Database::open({.path = path}, running);
    ASSERT_TRUE(db) << db.error().detail;
    (*db)->note_damage(segments::derived_families);
    segments::Families first;
    first.add(segments::Family::usage);
    ASSERT_TRUE((*db)->renew(first));
  }
  std::vector<::rocksdb::ColumnFamilyHandle*> handles;
  const auto families = segments::index_families(sizes);
  ::rocksdb::DB* opened = nullptr;
  const auto status = ::rocksdb::DB::Open(segments::index_options(sizes), segments::index_of(path),
                                          families, &handles, &opened);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const std::unique_ptr<::rocksdb::DB> index(opened);
  constexpr auto due = static_cast<std::size_t>(segments::Family::due);
  ASSERT_TRUE(index->DropColumnFamily(handles[due]).ok());
  ASSERT_TRUE(index->DestroyColumnFamilyHandle(handles[due]).ok());
  if (where == CutOff::within_the_making) {
    ASSERT_TRUE(
        index->CreateColumnFamily(families[due].options, families[due].name, &handles[due]).ok());
  }
  for (auto* const one : handles) {
    const bool is_gone = one == handles[due] && where == CutOff::after_the_drop;
    if (is_gone) continue;
    ASSERT_TRUE(index->DestroyColumnFamilyHandle(one).ok());
  }
}

TEST_F(LogIndexDamage, T16_a_repair_that_is_cut_off_is_one_to_a_look_and_to_a_start) {
  constexpr std::uint64_t completed = 30;
  fill(completed);
  for (const auto where : {CutOff::after_the_drop, CutOff::within_the_making}) {
    SCOPED_TRACE(static_cast<int>(where));
    bring_back();
    cut_a_repair_off(path(), where);
    if (where == CutOff::within_the_making) {
      const std::string list = list_of_files();
      flip(list, fs::file_size(list) - 3);
    }
    const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
    EXPECT_TRUE(judged) << judged.error().why;
    const auto report = segments::check_store(path(), {});
    ASSERT_TRUE(report) << report.error().why;
    EXPECT_GT(report->found, 0);
    const std::string backup = folder_.file("backup " + std::to_string(static_cast<int>(where)));
    const auto copied = segments::back_up_store(path(), backup, {});
    EXPECT_TRUE(copied) << copied.error().why;
    open();
    EXPECT_NE(reindexed_.find("lists of what is due"), std::string::npos) << reindexed_;
    EXPECT_EQ(use_everything(), 0);
    expect_no_key_runs_again(completed);
    store_.reset();
    const auto again = segments::check_store(path(), {});
    ASSERT_TRUE(again) << again.error().why;
    EXPECT_EQ(again->found, 0);
  }
}

// Cut after any of its records, as no crash leaves it: what a start refuses it leaves as it is, and
// a look says the same.
TEST_F(LogIndexDamage, T01_a_list_of_files_that_is_cut_cleanly_deletes_no_file_of_a_refused_store) {
  constexpr std::uint64_t completed = 40;
  fill(completed);
  ASSERT_TRUE(segments::reindex_store(path(), {}));
  fs::remove_all(sound());
  fs::copy(path(), sound(), fs::copy_options::recursive);
  const auto files = tables();
  const std::string list = list_of_files();
  const std::string whole = content_of(list);
  int refused = 0;
  std::size_t at = 0;
  while (at + 7 < whole.size()) {
    at += 7 + (static_cast<unsigned char>(whole[at + 4]) |
               static_cast<std::size_t>(static_cast<unsigned char>(whole[at + 5])) << 8U);
    SCOPED_TRACE(at);
    bring_back();
    put_content(list, whole.substr(0, at));
    const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
    auto store = try_open();
    EXPECT_EQ(judged.has_value(), store.has_value())
        << (store ? judged.error().why : store.error().detail);
    if (store) {
      store_ = std::move(*store);
      expect_no_key_runs_again(completed);
      continue;
    }
    ++refused;
    for (const std::string& file : files) EXPECT_TRUE(fs::exists(path("/index/" + file))) << file;
    put_content(list, whole);
    open();
    expect_no_key_runs_again(completed);
  }
  EXPECT_EQ(at, whole.size());
  EXPECT_GT(refused, 0);
}

// RocksDB deletes the files that an older list does not name as soon as it opens the index for
// writing; the stored requests in them are nowhere else.
TEST_F(LogIndexDamage, T01_an_older_list_of_files_is_refused_before_a_file_is_deleted) {
  constexpr std::uint64_t completed = 400;
  const auto start = [&] {
    return open_log(
        path(), test_settings(),
        {.host = clock.host(),
         .sizes = {
             .segment_bytes = 8UL << 10U, .cache_bytes = 1UL << 20U, .buffer_bytes = 16UL << 10U}});
  };
  store_ = std::move(*start());
  Accept later = an_accept(1);
  later.as.id = numbered(accepted);
  must(std::move(later));
  store_.reset();
  store_ = std::move(*start());
  const std::string current = content_of(path("/index/CURRENT"));
  const std::string list = list_of_files();
  const std::string older = content_of(list);
  for (std::uint64_t number = 1; number <= completed; ++number) must(a_complete(run(number)));
  store_.reset();
  ASSERT_FALSE(fs::exists(path("/commits/00000001.commits")));
  fs::copy(path(), sound(), fs::copy_options::recursive);
  const auto files = tables();

  put_content(path("/index/CURRENT"), current);
  put_content(list, older);
  const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
  const auto refused = start();
  ASSERT_FALSE(judged);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, judged.error().why);
  EXPECT_NE(refused.error().detail.find("is damaged"), std::string::npos) << refused.error().detail;
  for (const std::string& file : files) EXPECT_TRUE(fs::exists(path("/index/" + file))) << file;

  bring_back();
  store_ = std::move(*start());
  expect_replays(completed);
}

}  // namespace
}  // namespace idem::test
