#include "store/log/check_store.hpp"
#include "store/log/log_store.hpp"
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

TEST_F(LogCutOff, a_making_that_was_cut_off_is_made_anew) {
  open();
  store_.reset();
  // Nobody got a confirmation while the mark is there.
  put_content(path("/unfinished"), "");
  fs::remove(path("/commits/format"));
  EXPECT_FALSE(segments::check_store(path(), {}));
  const auto missing =
      open_log(path(), test_settings(), {.host = clock.host(), .which = {.make = false}});
  ASSERT_FALSE(missing);
  EXPECT_TRUE(fs::exists(path("/unfinished"))) << "changed nothing";
  open();
  complete(1);
  EXPECT_FALSE(fs::exists(path("/unfinished")));
}

TEST_F(LogCutOff, T01_a_whole_store_without_a_part_is_not_made_anew) {
  open();
  complete(1);
  store_.reset();
  fs::rename(path("/commits"), folder_.file("elsewhere"));
  EXPECT_NE(refusal().find("its log is missing"), std::string::npos) << refusal();
  EXPECT_FALSE(fs::exists(path("/commits")));
  fs::rename(folder_.file("elsewhere"), path("/commits"));
  for (const char* const part : {"/index", "/records", "/ids"}) {
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

TEST_F(LogCutOff, T01_a_list_of_files_that_lost_more_is_refused_and_stays_as_it_is) {
  open();
  complete(1);
  store_.reset();
  const std::string list = manifest();
  const std::string sound = content_of(list);
  for (std::size_t at = 12; at + 60 < sound.size(); at += 7) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    put_content(list, bytes);
    const std::string why = refusal();
    if (why.empty()) {
      // The log had what it lost.
      open();
      ASSERT_EQ(outcome_of(1), "replay") << "byte " << at;
      return;
    }
    ASSERT_EQ(content_of(list), bytes) << "byte " << at;
    ASSERT_FALSE(fs::exists(list + ".torn")) << "byte " << at;
  }
  put_content(list, sound);
  open();
  EXPECT_EQ(outcome_of(1), "replay");
}

TEST_F(LogCutOff, T16_a_mending_that_was_cut_off_is_undone_first) {
  open();
  complete(1);
  store_.reset();
  const std::string list = manifest();
  const std::string sound = content_of(list);
  put_content(list + ".torn", sound);
  put_content(list, sound.substr(0, sound.size() / 3));
  open();
  EXPECT_EQ(outcome_of(1), "replay");
  EXPECT_FALSE(fs::exists(list + ".torn"));
}

}  // namespace
}  // namespace idem::test
