#include "store/log/log_store.hpp"
#include "store_conformance/lost_medium.hpp"

#include <fstream>
#include <map>

/// The folder below a log that is open: moved, replaced, or robbed of a part.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

class LogFolder : public OnLostMedium {
 protected:
  void SetUp() override {
    store_ = open_by_url("embedded:" + path(), clock);
    complete(1);
  }
  std::string path(const char* part = "") const { return folder_.file("idem.log") + part; }
  std::string elsewhere() const { return folder_.file("elsewhere"); }
};

TEST_F(LogFolder, T01_a_folder_that_is_moved_stores_nothing_until_it_is_back) {
  fs::rename(path(), elsewhere());
  expect_nothing_is_stored();
  fs::rename(elsewhere(), path());
  EXPECT_EQ(outcome_of(1), "replay");
  complete(4);
  store_.reset();
  store_ = open_by_url("embedded:" + path(), clock);
  EXPECT_EQ(outcome_of(4), "replay");
}

TEST_F(LogFolder, T01_a_folder_that_is_deleted_stores_nothing) {
  fs::remove_all(path());
  expect_nothing_is_stored();
}

TEST_F(LogFolder, T01_a_folder_that_another_one_replaces_stores_nothing) {
  fs::copy(path(), elsewhere(), fs::copy_options::recursive);
  fs::rename(path(), folder_.file("before"));
  fs::rename(elsewhere(), path());
  expect_nothing_is_stored();
}

// It ends by and by, beside a process that serves from what a restore put at the path.
TEST_F(LogFolder, T01_at_its_end_a_store_that_was_moved_away_writes_nothing_to_the_next_one) {
  const auto contents = [&] {
    std::map<std::string, std::string> all;
    std::error_code code;  // A file may get another name meanwhile.
    for (const auto& entry : fs::recursive_directory_iterator(path(), code)) {
      if (!entry.is_regular_file(code)) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      all[entry.path()] = {std::istreambuf_iterator<char>(in), {}};
    }
    return all;
  };
  for (int number = 10; number < 200; ++number) complete(number);
  // What the store does beside its commits is over once all is the same several times.
  constexpr int times = 5;
  for (int same = 0; same < times;) {
    const auto once = contents();
    same = once == contents() ? same + 1 : 0;
  }
  fs::copy(path(), elsewhere(), fs::copy_options::recursive);
  const std::string before = folder_.file("before.log");
  fs::rename(path(), before);
  fs::rename(elsewhere(), path());
  const auto there = contents();
  store_.reset();
  EXPECT_EQ(contents(), there);
  store_ = open_by_url("embedded:" + before, clock);
  EXPECT_EQ(outcome_of(199), "replay");
}

TEST_F(LogFolder, T01_a_log_that_is_moved_stores_nothing_until_it_is_back) {
  fs::rename(path("/commits"), elsewhere());
  expect_nothing_is_stored();
  fs::rename(elsewhere(), path("/commits"));
  EXPECT_EQ(outcome_of(1), "replay");
  complete(4);
}

TEST_F(LogFolder, T01_a_table_of_ids_that_is_moved_stores_nothing_until_it_is_back) {
  fs::rename(path("/ids"), elsewhere());
  expect_nothing_is_stored();
  fs::rename(elsewhere(), path("/ids"));
  EXPECT_EQ(outcome_of(1), "replay");
  complete(4);
}

// Without its frames the index would be of an earlier moment, and later keys could run again.
TEST_F(LogFolder, T01_without_its_log_what_was_committed_opens_no_more) {
  complete(5);
  const std::string log = path("/commits/00000001.commits");
  fs::rename(log, elsewhere());
  expect_nothing_is_stored();
  // As a start after a crash would find it.
  const std::string after = folder_.file("after.log");
  fs::copy(path(), after, fs::copy_options::recursive);
  const auto refused = open_log(after, test_settings(), {.host = clock.host()});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("its log ends before its index"), std::string::npos)
      << refused.error().detail;
  fs::copy(elsewhere(), after + "/commits/00000001.commits");
  const auto store = open_by_url("embedded:" + after, clock);
  for (const int number : {1, 5}) EXPECT_EQ(outcome_of(*store, number), "replay") << number;
}

}  // namespace
}  // namespace idem::test
