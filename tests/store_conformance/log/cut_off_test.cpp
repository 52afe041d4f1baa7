#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store/log/log_store.hpp"
#include "store/log/making.hpp"
#include "store_conformance/log/runs.hpp"
#include "store_conformance/lost_medium.hpp"

/// A log store whose making, or whose index's list of files, was cut off (see also
/// embedded/power_loss_test.cpp, which cuts everywhere).
namespace idem::test {
namespace {

namespace fs = std::filesystem;

class LogCutOff : public OnLostMedium {
 protected:
  std::string path(const char* part = "") const { return folder_.file("idem.store") + part; }
  std::string refusal() const {
    const auto store = open_log(path(), test_settings(), {.host = clock.host()});
    return store ? "" : store.error().detail;
  }
  void open() {
    auto store = open_log(path(), test_settings(), {.host = clock.host()});
    ASSERT_TRUE(store) << store.error().detail;
    store_ = std::move(*store);
  }
  /// RocksDB's present list of its files.
  std::string manifest() const {
    const std::string name = content_of(path("/index/CURRENT"));
    return path("/index/") + name.substr(0, name.size() - 1);
  }
};

// Nobody got a confirmation while the mark is there.
TEST_F(LogCutOff, a_making_that_was_cut_off_is_made_anew) {
  open();
  store_.reset();
  for (const char* const part : {"/index", "/commits", "/records", "/ids"}) {
    fs::remove_all(path(part));
    fs::create_directory(path(part));
  }
  put_content(path("/index/MANIFEST-000001"), "half");
  put_content(path("/unfinished"), "");
  put_content(path("/commits/format.part"), "half");
  put_content(path("/mark.part"), "half");
  const auto report = segments::check_store(path(), {});
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().why.find("its making"), std::string::npos) << report.error().why;
  const auto missing =
      open_log(path(), test_settings(), {.host = clock.host(), .which = {.make = false}});
  ASSERT_FALSE(missing);
  EXPECT_TRUE(fs::exists(path("/commits/format.part"))) << "changed nothing";
  open();
  complete(1);
  EXPECT_FALSE(fs::exists(path("/unfinished")));
  EXPECT_FALSE(fs::exists(path("/commits/format.part")));
  EXPECT_FALSE(fs::exists(path("/mark.part")));
}

// Someone copied a store into the directory of a start that had failed.
TEST_F(LogCutOff, T01_a_mark_beside_a_store_that_was_in_use_deletes_nothing) {
  open();
  complete(1);
  store_.reset();
  put_content(path("/unfinished"), "");
  EXPECT_NE(refusal().find("if that is a store that you brought back, delete"), std::string::npos)
      << refusal();
  EXPECT_FALSE(segments::check_store(path(), {}));
  fs::remove(path("/unfinished"));
  open();
  EXPECT_EQ(outcome_of(1), "replay");
}

TEST_F(LogCutOff, a_mark_beside_files_of_others_deletes_nothing) {
  fs::create_directory(path());
  put_content(path("/unfinished"), "");
  put_content(path("/idem.db"), "records");
  EXPECT_NE(refusal().find("beside idem.db"), std::string::npos) << refusal();
  EXPECT_EQ(content_of(path("/idem.db")), "records");
}

TEST_F(LogCutOff, a_making_that_fails_leaves_no_mark) {
  fs::create_directory(path());
  fs::create_directory(path("/commits"));  // Not empty for what follows.
  put_content(path("/unfinished"), "");
  fs::create_directories(path("/records"));
  {
    auto making = segments::Making::begin(path());
    ASSERT_TRUE(making) << making.error().detail;
    put_content(path("/unfinished"), "");
    fs::create_directory(path("/index"));
  }
  EXPECT_TRUE(fs::is_empty(path()));
}

TEST_F(LogCutOff, T01_one_start_at_a_time_and_no_restore_beside_it) {
  auto making = std::make_unique<std::expected<segments::Making, StoreError>>(
      segments::Making::begin(path()));
  ASSERT_TRUE(*making);
  const auto second = open_log(path(), test_settings(), {.host = clock.host()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, StoreError::Code::unavailable) << second.error().detail;
  const std::string other = folder_.file("other");
  ASSERT_TRUE(open_log(other, test_settings(), {.host = clock.host()}));
  const std::string backup = folder_.file("backup");
  ASSERT_TRUE(segments::back_up_store(other, backup, {}));
  const RestoreOrder order{.from = backup, .path = path(), .keep_old = true};
  EXPECT_FALSE(segments::restore_store(order));
  making.reset();
  ASSERT_TRUE(segments::restore_store(order));
  open();
}

TEST_F(LogCutOff, a_restore_moves_a_file_away_that_is_in_its_place) {
  const std::string other = folder_.file("other");
  ASSERT_TRUE(open_log(other, test_settings(), {.host = clock.host()}));
  const std::string backup = folder_.file("backup");
  ASSERT_TRUE(segments::back_up_store(other, backup, {}));
  put_content(path(), "not a directory");
  const auto restored = segments::restore_store({.from = backup, .path = path(), .keep_old = true});
  ASSERT_TRUE(restored) << restored.error().why;
  EXPECT_EQ(content_of(restored->old_store), "not a directory");
  open();
}

TEST_F(LogCutOff, what_a_check_of_the_disk_found_is_not_overlooked) {
  fs::create_directories(path("/lost+found"));
  put_content(path("/lost+found/#17"), "perhaps a part of a store");
  EXPECT_NE(refusal().find("lost+found"), std::string::npos) << refusal();
}

TEST_F(LogCutOff, T01_a_whole_store_without_a_part_is_not_made_anew) {
  open();
  complete(1);
  store_.reset();
  fs::rename(path("/commits"), folder_.file("elsewhere"));
  EXPECT_NE(refusal().find("its log is missing"), std::string::npos) << refusal();
  EXPECT_FALSE(fs::exists(path("/commits")));
  fs::rename(folder_.file("elsewhere"), path("/commits"));
  fs::rename(path("/index"), folder_.file("elsewhere"));
  EXPECT_NE(refusal().find("its index is missing"), std::string::npos) << refusal();
  fs::rename(folder_.file("elsewhere"), path("/index"));
  for (const char* const part : {"/records", "/ids"}) {
    fs::remove_all(path(part));
    open();
    EXPECT_EQ(outcome_of(1), "replay") << "its log has all";
    store_.reset();
  }
}

TEST_F(LogCutOff, a_directory_of_others_is_refused_and_stays_as_it_is) {
  fs::create_directory(path());
  fs::create_directory(path("/lost+found"));
  put_content(path("/notes.txt"), "mine");
  EXPECT_NE(refusal().find("has other files and no store"), std::string::npos) << refusal();
  EXPECT_EQ(std::distance(fs::directory_iterator(path()), fs::directory_iterator()), 2);
  fs::remove(path("/notes.txt"));
  open();  // The root of a file system.
  complete(1);
}

TEST_F(LogCutOff, T16_a_torn_list_of_files_is_ended_where_it_is_whole) {
  open();
  complete(1);
  store_.reset();
  open();  // Each start begins a list, with all that there is at its beginning.
  store_.reset();
  const std::string list = manifest();
  std::string bytes = content_of(list);
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  put_content(list, bytes);
  open();
  EXPECT_EQ(outcome_of(1), "replay");
  complete(2);
  store_.reset();
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->found, 0);
}

// RocksDB takes that for a fault of its own, and aborts.
TEST_F(LogCutOff, S22_a_list_of_files_that_is_there_twice_ends_no_process) {
  open();
  complete(1);
  store_.reset();
  const std::string list = manifest();
  const std::string bytes = content_of(list);
  put_content(list, bytes + bytes);
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(content_of(list), bytes + bytes) << "a check changes nothing";
  open();
  EXPECT_EQ(outcome_of(1), "replay");
}

// Where the log has not all that the shorter list lacks, a start would delete what that list does
// not name.
TEST_F(LogCutOff, T01_a_list_of_files_that_lost_more_is_refused_and_stays_as_it_is) {
  const LogSizes small{
      .segment_bytes = 8UL << 10U, .cache_bytes = 1UL << 20U, .buffer_bytes = 16UL << 10U};
  const auto start = [&] {
    return open_log(path(), test_settings(), {.host = clock.host(), .sizes = small});
  };
  const std::string sound = folder_.file("sound");
  int refused = 0;
  int opened = 0;
  // The log has what the end of a list lacks, unless RocksDB merged files last: the shorter list
  // names those, and they are deleted. So some stores are tried.
  for (int attempt = 0; attempt < 20 && opened == 0; ++attempt) {
    fs::remove_all(path());
    fs::remove_all(sound);
    store_ = std::move(*start());
    int number = 0;
    do {
      complete(++number);
    } while (fs::exists(path("/commits/00000001.commits")) && number < 2'000);
    store_.reset();
    fs::rename(path(), sound);
    const std::string list = content_of(sound + "/index/CURRENT");
    const std::string manifest = "/index/" + list.substr(0, list.size() - 1);
    const std::size_t size = content_of(sound + manifest).size();
    for (std::size_t at = 20; at + 4 < size; at += size / 40) {
      fs::remove_all(path());
      fs::copy(sound, path(), fs::copy_options::recursive);
      std::string bytes = content_of(path() + manifest);
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      put_content(path() + manifest, bytes);
      auto store = start();
      if (store) {
        ++opened;
        for (int i = 1; i <= number; ++i) ASSERT_EQ(outcome_of(**store, i), "replay") << i;
        continue;
      }
      ++refused;
      EXPECT_EQ(content_of(path() + manifest), bytes) << "byte " << at;
      for (const auto& entry : fs::directory_iterator(sound + "/index")) {
        if (entry.path().extension() != ".sst") continue;
        EXPECT_TRUE(fs::exists(path("/index") / entry.path().filename())) << "byte " << at;
      }
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(opened, 0);
}

// Where a start has no other folder to write to than that of its store.
TEST_F(LogCutOff, T16_a_torn_list_is_judged_beside_the_index_and_nothing_stays_there) {
  open();
  complete(1);
  store_.reset();
  open();
  store_.reset();
  const std::string list = manifest();
  std::string bytes = content_of(list);
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  put_content(list, bytes);
  fs::create_directories(path("/idem-look-killed/links"));
  const char* const had = std::getenv("TMPDIR");
  const std::string before = had != nullptr ? had : "";
  ::setenv("TMPDIR", folder_.file("nowhere").c_str(), 1);
  open();
  had != nullptr ? ::setenv("TMPDIR", before.c_str(), 1) : ::unsetenv("TMPDIR");
  EXPECT_EQ(outcome_of(1), "replay");
  for (const auto& entry : fs::directory_iterator(path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("idem-look-")) << entry.path();
  }
}

}  // namespace
}  // namespace idem::test
