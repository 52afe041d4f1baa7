#pragma once

#include "store/sqlite/backup_file.hpp"
#include "store/sqlite/check_file.hpp"
#include "store/sqlite/judge_log.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"
#include "store_conformance/log/runs.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace idem::test {

inline constexpr std::size_t log_header_size = 32;
inline constexpr std::size_t log_frame_size = 24 + 4'096;
inline constexpr int keys_in_the_log = 12;

inline std::string log_head_of(const std::string& path) {
  std::string head(log_header_size, '\0');
  std::ifstream(path, std::ios::binary).read(head.data(), log_header_size);
  return head;
}

inline std::uint32_t log_number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

/// A store whose process was killed: the files are copied beside it while it is open.
class KilledStore : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open(live());
    ASSERT_TRUE(opened) << opened.error().detail;
    store_ = std::move(*opened);
    for (int number = 1; number <= keys_in_the_log; ++number) complete(number);
    save();
    ASSERT_EQ((log_.size() - log_header_size) % log_frame_size, 0U);
    for (std::size_t at = log_header_size; at < log_.size(); at += log_frame_size) {
      if (log_number_at(log_, at + 4) != 0) commits_.push_back(at);
    }
    ASSERT_GT(commits_.size(), 20U);
  }

  std::string live() const { return folder_.file("live.db"); }
  std::string path() const { return folder_.file("idem.db"); }
  std::string log_path() const { return path() + "-wal"; }

  std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& path) {
    return open_sqlite(path, test_settings(),
                       {.host = clock_.host(),
                        .warn = [this](const std::string& text) { warnings_.push_back(text); }});
  }

  void complete(int number) {
    Reserve verb = a_reserve(number);
    verb.generation = store_->identity().generation;
    const auto outcome = ask_and_wait(*store_, verb);
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    ASSERT_TRUE(ask_and_wait(*store_, a_complete(std::get<Execute>(*outcome))));
    clock_.advance(1s);
  }

  void save() {
    database_ = content_of(live());
    log_ = content_of(live() + "-wal");
  }

  /// As after a kill, with this log.
  void put(const std::string& log) {
    put_content(path(), database_);
    put_content(log_path(), log);
  }
  void put(const std::string& database, const std::string& log) {
    put_content(path(), database);
    put_content(log_path(), log);
  }

  static std::string flipped(std::string bytes, std::size_t at, unsigned bit = 3) {
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << bit));
    return bytes;
  }

  sqlite::LogJudgement::Kind judged() const {
    const auto judged = sqlite::judge_log(log_path());
    EXPECT_TRUE(judged) << judged.error();
    return judged->kind;
  }

  /// The keys that would run again.
  int lost_keys(Store& store) {
    int lost = 0;
    for (int number = 1; number <= keys_in_the_log; ++number) {
      Reserve again = a_reserve(number, 2);
      again.generation = store.identity().generation;
      const auto outcome = ask_and_wait(store, again);
      EXPECT_TRUE(outcome);
      if (outcome && !is<Replay>(*outcome)) ++lost;
    }
    return lost;
  }

  /// Start, check, look and backup give one judgement, and nothing changes.
  void expect_refused(const std::string& part) {
    const std::string log = content_of(log_path());
    const auto refused = open(path());
    ASSERT_FALSE(refused) << part;
    EXPECT_EQ(refused.error().code, StoreError::Code::refused);
    const std::string& why = refused.error().detail;
    for (const std::string& piece : {path(), part, std::string("idem store recover")}) {
      EXPECT_NE(why.find(piece), std::string::npos) << why;
    }
    EXPECT_EQ(content_of(path()), database_);
    EXPECT_EQ(content_of(log_path()), log);
    // Without its log the database may be none that can be read.
    const auto report = sqlite::check_file(path(), {});
    ASSERT_TRUE(!report || report->found > 0);
    EXPECT_EQ(report ? path() + ": " + report->findings.back().what : report.error().why, why);
    const auto looked = sqlite::look_at_file(path(), test_settings(), LookDepth::whole);
    EXPECT_EQ(looked ? path() + ": " + looked->contradiction : looked.error().why, why);
    const auto backup = sqlite::backup_file(path(), folder_.file("backup"), {});
    ASSERT_FALSE(backup);
    EXPECT_EQ(backup.error().why, why);
    EXPECT_EQ(content_of(log_path()), log);
  }

  TempFolder folder_;
  TestClock clock_;
  std::unique_ptr<Store> store_;
  std::string database_;
  std::string log_;
  std::vector<std::size_t> commits_;  ///< Where the frames that end one begin.
  std::vector<std::string> warnings_;
};

}  // namespace idem::test
