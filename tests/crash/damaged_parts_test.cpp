#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "support/admin.hpp"
#include "support/live.hpp"

/// What becomes of confirmed keys when a part of a local store's files is damaged or missing.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

std::string name_of_store(const testing::TestParamInfo<std::string>& store) { return store.param; }

/// tests/damage/run, which names its cases itself, at a small, fixed size.
class DamagedParts : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stores, DamagedParts, testing::Values("sqlite", "embedded", "shards"),
                         name_of_store);

TEST_P(DamagedParts, T30_S22_no_damage_runs_a_confirmed_key_again_or_crashes_a_gateway) {
  IDEM_NEED_PROGRAM("idem");
  const Ran ran = run_program(
      "/usr/bin/env",
      {"python3", IDEM_SOURCE_DIR "/tests/damage/run", "--fixed", "--store", GetParam()},
      {"IDEM=" + built_program("idem").string(), "PYTHONDONTWRITEBYTECODE=1"});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_NE(ran.output.find("N = "), std::string::npos) << ran.output;
}

/// A store whose gateway has ended.
class DamagedStore : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    std::ofstream(dir_.path() / "idem.yaml")
        << "listen: 127.0.0.1:0\nupstream: {url: \"http://" << provider_.address()
        << "\"}\nscope: {from: \"static:a\"}\nstore: \"" << url() << "\"\n";
    for (int part = 0; part < 2; ++part) {
      Process gateway(
          {.program = built_program("idem"), .arguments = {"gateway", "--config", settings()}});
      const std::string address = gateway.wait_for_address("gateway");
      for (int number = 0; number < 20; ++number) {
        const std::string key = fmt::format("k{}-{}", part, number);
        ASSERT_EQ(send_once(address, charge(key)).status, 201) << gateway.output();
      }
      gateway.signal(part == 0 ? SIGTERM : SIGKILL);
      ASSERT_TRUE(gateway.wait());
      if (part == 0) make_of_a_backup();
    }
  }
  /// So that its log has but what comes from now on.
  void make_of_a_backup() {
    const std::string backup = dir_.path() / fmt::format("backup {}", ++backups_);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"store", "backup", url(), backup},
          std::vector<std::string>{"store", "restore", backup, url(), "--replace"}}) {
      const Ran ran = run_program(built_program("idem"), words);
      ASSERT_EQ(ran.exit_code, 0) << ran.output;
    }
  }
  std::string store() const { return dir_.path() / "idem.db"; }
  std::string url() const { return GetParam() + ":" + store(); }
  std::string settings() const { return dir_.path() / "idem.yaml"; }

  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  /// What each of those that judge a store says about it: a start last, because it may change it.
  std::array<std::string, 4> refusals() {
    std::array<std::string, 4> said;
    const std::array<std::vector<std::string>, 3> commands{
        {{"store", "check", url()},
         {"config", "check", "--ask-store", "--config", settings()},
         {"doctor", "--config", settings()}}};
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const Ran ran = run_program(built_program("idem"), commands[i]);
      EXPECT_LT(ran.exit_code, 128) << ran.output;
      if (ran.exit_code != 0) said[i] = ran.output;
    }
    Process gateway(
        {.program = built_program("idem"), .arguments = {"gateway", "--config", settings()}});
    if (gateway.wait_for_address("gateway").empty()) said[3] = gateway.output();
    return said;
  }
  void expect_all_refuse(const std::string& why) {
    for (const std::string& said : refusals()) {
      EXPECT_NE(said.find(store()), std::string::npos) << said;
      EXPECT_NE(said.find(why), std::string::npos) << said;
    }
  }

  TempDir dir_;
  Provider provider_;
  int backups_ = 0;
};

class DamagedFile : public DamagedStore {};
INSTANTIATE_TEST_SUITE_P(Stores, DamagedFile, testing::Values("sqlite"), name_of_store);
class DamagedDirectory : public DamagedStore {};
INSTANTIATE_TEST_SUITE_P(Stores, DamagedDirectory, testing::Values("embedded"), name_of_store);

TEST_P(DamagedFile, S22_all_judge_a_file_with_a_damaged_page_as_a_start_does) {
  std::string bytes = content(store());
  bytes.replace(bytes.size() / 2, 4096, 4096, '\0');
  put(store(), bytes);
  expect_all_refuse("is corrupt");
}

// SQLite itself would read the store, and complain of the first write. A log that has the first
// page counts instead, so this needs a store without one.
TEST_P(DamagedFile, S22_a_header_that_asks_for_a_later_sqlite_is_damage_to_all) {
  make_of_a_backup();
  ASSERT_FALSE(fs::exists(store() + "-wal"));
  std::string bytes = content(store());
  bytes[18] = static_cast<char>(bytes[18] ^ 1);
  put(store(), bytes);
  expect_all_refuse("byte 18 of its header");
}

// SQLite would delete the log, and the start would make a new store.
TEST_P(DamagedFile, S22_a_log_without_its_database_is_refused_by_all) {
  ASSERT_GT(fs::file_size(store() + "-wal"), 0U);
  put(store(), "");
  expect_all_refuse("which SQLite would delete");
  fs::remove(store());
  expect_all_refuse("which SQLite would delete");
  EXPECT_FALSE(fs::exists(store()));
}

// No start refuses it, because a power cut leaves the same.
TEST_P(DamagedFile, S22_all_name_a_torn_end_of_the_log_as_a_doubt) {
  const std::string log = store() + "-wal";
  fs::resize_file(log, fs::file_size(log) - 100);
  std::vector<std::string> said;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"store", "check", url()},
        {"config", "check", "--ask-store", "--config", settings()},
        {"doctor", "--config", settings()}}) {
    const Ran ran = run_program(built_program("idem"), words);
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    said.push_back(ran.output);
  }
  Process gateway(
      {.program = built_program("idem"), .arguments = {"gateway", "--config", settings()}});
  EXPECT_FALSE(gateway.wait_for_address("gateway").empty());
  said.push_back(gateway.output());
  for (const std::string& one : said) {
    EXPECT_NE(one.find("ends at byte"), std::string::npos) << one;
  }
}

TEST_P(DamagedDirectory, S22_a_file_of_records_several_times_over_is_refused_by_all) {
  const std::string file = store() + "/records/00000001.records";
  const std::string bytes = content(file);
  // A kill may have left the half of it, which the log would write.
  put(file, bytes + bytes + bytes + bytes);
  expect_all_refuse("its log ends before its versions");
}

TEST_P(DamagedDirectory, S22_missing_records_are_refused_by_all_and_no_start_makes_them_anew) {
  const std::string folder = store() + "/records";
  fs::rename(folder, store() + ".records");
  for (int start = 0; start < 2; ++start) expect_all_refuse("records is missing");
  fs::remove_all(folder);
  fs::rename(store() + ".records", folder);
  for (const std::string& said : refusals()) EXPECT_EQ(said, "");
}

TEST_P(DamagedDirectory, S22_a_folder_of_a_shard_that_the_store_does_not_know_is_refused_by_all) {
  const std::string copy = dir_.path() / "copy";
  fs::copy(store(), copy, fs::copy_options::recursive);
  fs::create_directory(store() + "/shards");
  fs::rename(copy, store() + "/shards/01");
  expect_all_refuse("has records in shards/01");
}

TEST_P(DamagedDirectory, S22_an_empty_directory_is_no_damage) {
  fs::remove_all(store());
  fs::create_directory(store());
  const auto said = refusals();
  for (const std::size_t judge : {1U, 2U, 3U}) EXPECT_EQ(said.at(judge), "");
}

}  // namespace
}  // namespace idem::test
