#include "store/sqlite/check_file.hpp"
#include "store/sqlite/recover_file.hpp"
#include "store/sqlite/restore_file.hpp"
#include "store_conformance/sqlite/killed_store.hpp"
#include "store_conformance/sqlite/service_connection.hpp"

#include <idem/sqlite.hpp>

#include <fmt/format.h>
#include <sqlite3.h>

/// What is wrong in the write-ahead log of a killed process: SQLite takes the first bad frame for
/// the end of the log, and every commit after it would be lost without a word.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using LogKind = sqlite::LogJudgement::Kind;

class SqliteLogDamage : public KilledStore {};

TEST_F(SqliteLogDamage, S22_a_flipped_bit_before_a_later_commit_refuses_the_start) {
  const std::size_t middle = commits_[commits_.size() / 2];
  const std::string frame = fmt::format("the frame at byte {}", middle);
  // Page number, commit mark, salts, checksum, the page.
  for (const std::size_t at : {3, 7, 8, 16, 4'119}) {
    SCOPED_TRACE(at);
    put(flipped(log_, middle + at));
    expect_refused(frame);
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(SqliteLogDamage, S22_so_does_a_zeroed_page_a_lost_frame_and_a_swapped_one) {
  const std::size_t middle = commits_[commits_.size() / 2];
  std::string zeroed = log_;
  zeroed.replace(middle / 4'096 * 4'096, 4'096, 4'096, '\0');
  put(zeroed);
  expect_refused("the frame at byte");

  std::string shorter = log_;
  shorter.erase(middle, log_frame_size);
  put(shorter);
  expect_refused("the frame at byte");

  std::string swapped = log_;
  swapped.replace(middle, log_frame_size, log_, middle - log_frame_size, log_frame_size);
  swapped.replace(middle - log_frame_size, log_frame_size, log_, middle, log_frame_size);
  put(swapped);
  expect_refused("the frame at byte");
}

TEST_F(SqliteLogDamage, S22_a_damaged_header_refuses_the_start_wherever_it_is_hit) {
  for (std::size_t at = 0; at < log_header_size; at += 3) {
    SCOPED_TRACE(at);
    put(flipped(log_, at));
    const auto refused = open(path());
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().detail.find("its header is not what was written"), std::string::npos)
        << refused.error().detail;
    EXPECT_EQ(content_of(log_path()), flipped(log_, at));
  }
  put(std::string(log_header_size, '\0') + log_.substr(log_header_size));
  expect_refused("its header is not what was written");
  // With one frame alone no other one follows it.
  put(flipped(log_.substr(0, log_header_size + log_frame_size), 13));
  EXPECT_EQ(judged(), LogKind::damaged);
}

TEST_F(SqliteLogDamage, S22_a_commit_whose_mark_is_lost_is_no_part_of_the_next_one) {
  // The last commit but one: of the two marks only the last one is left.
  const std::size_t last_but_one = commits_[commits_.size() - 2];
  std::string unmarked = log_;
  unmarked.replace(last_but_one + 4, 4, 4, '\0');
  put(unmarked);
  expect_refused(fmt::format("the frame at byte {}", last_but_one));
  // And so where its salts or its checksum alone are hit.
  for (const std::size_t at : {9, 15, 17, 23}) {
    put(flipped(log_, last_but_one + at));
    expect_refused(fmt::format("the frame at byte {}", last_but_one));
  }
}

TEST_F(SqliteLogDamage, S22_every_part_of_every_frame_before_the_last_commit_counts) {
  const std::size_t last_commit = commits_[commits_.size() - 2] + log_frame_size;
  std::size_t judgements = 0;
  for (std::size_t frame = log_header_size; frame < log_.size(); frame += log_frame_size) {
    // Number, mark, salts and checksum with their first and last bytes; the page.
    for (const std::size_t at : {0, 3, 4, 7, 8, 15, 16, 23, 24, 511, 2'048, 4'119}) {
      put_content(log_path(), flipped(log_, frame + at));
      const LogKind kind = judged();
      // In the last commit a bit may make a mark where no power cut leaves one.
      EXPECT_TRUE(kind == LogKind::damaged || (frame >= last_commit && kind == LogKind::torn))
          << "frame " << frame << " byte " << at;
      ++judgements;
    }
  }
  fmt::print("judgements={}\n", judgements);
}

TEST_F(SqliteLogDamage, S22_a_torn_last_commit_is_a_doubt_that_start_and_check_name) {
  const std::size_t before = commits_[commits_.size() - 2] + log_frame_size;
  const std::size_t last = commits_.back();
  for (const std::string& torn :
       {flipped(log_, last + 300), log_.substr(0, last + 1'000), log_.substr(0, last + 20)}) {
    put(torn);
    warnings_.clear();
    const auto report = sqlite::check_file(path(), {});
    ASSERT_TRUE(report) << report.error().why;
    EXPECT_EQ(report->found, 0U);
    ASSERT_EQ(report->doubts.size(), 1U);
    const auto store = open(path());
    ASSERT_TRUE(store) << store.error().detail;
    ASSERT_EQ(warnings_.size(), 1U);
    EXPECT_EQ(warnings_[0], path() + ": " + report->doubts[0]);
    EXPECT_NE(warnings_[0].find(fmt::format("ends at byte {}", before)), std::string::npos)
        << warnings_[0];
    EXPECT_EQ(lost_keys(**store), 1) << "that of the last commit, whose reserve is left";
  }
}

TEST_F(SqliteLogDamage, S22_a_torn_end_is_cut_off_before_anything_is_written) {
  // Two of the same end: dropped by two starts, neither of which comes to its first commit.
  const std::size_t before = commits_[commits_.size() - 2] + log_frame_size;
  put(flipped(log_, commits_.back() + 300));
  const auto judged = sqlite::judge_log(log_path());
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->kind, LogKind::torn);
  EXPECT_EQ(judged->end, before);
  ASSERT_TRUE(sqlite::settle_log(log_path(), *judged));
  EXPECT_EQ(fs::file_size(log_path()), before);
  const auto cut = sqlite::judge_log(log_path());
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->kind, LogKind::whole);
  EXPECT_EQ(cut->commits, judged->commits);
}

TEST_F(SqliteLogDamage, S22_frames_of_an_earlier_generation_are_no_damage) {
  // Written back, and begun anew: the rest of the log is of before.
  StoredResponse large{.status = 201, .headers = {}, .body = std::string(640UL * 1024, 'b')};
  int number = keys_in_the_log;
  const std::string salts = log_.substr(16, 8);
  while (log_.substr(16, 8) == salts && number < 200) {
    Reserve verb = a_reserve(++number);
    verb.generation = store_->identity().generation;
    const auto outcome = ask_and_wait(*store_, verb);
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    ASSERT_TRUE(ask_and_wait(*store_, a_complete(std::get<Execute>(*outcome), large)));
    ASSERT_TRUE(ask_and_wait(*store_, Count{}));
    log_ = log_head_of(live() + "-wal");
  }
  save();
  ASSERT_NE(log_.substr(16, 8), salts);
  put(log_);
  const auto whole = sqlite::judge_log(log_path());
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->kind, LogKind::whole);
  EXPECT_LT(whole->end, whole->bytes);
  const auto store = open(path());
  ASSERT_TRUE(store) << store.error().detail;
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(lost_keys(**store), 0);
}

TEST_F(SqliteLogDamage, S22_a_log_that_is_gone_refuses_the_start_of_a_store_that_was_not_closed) {
  // All is in the database, but for what came after: as the owner writes its log back.
  sqlite3* db = nullptr;
  put(log_);
  ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  database_ = content_of(path());
  ASSERT_FALSE(fs::exists(log_path()));
  expect_refused("is not there or empty");
  put(std::string());
  expect_refused("is not there or empty");
  put(std::string(log_header_size + log_frame_size, '\0'));
  expect_refused("is not there or empty");

  // Other tables are a service's, which may have opened the file by itself.
  fs::remove(log_path());
  ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE orders (id)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const auto store = open(path());
  ASSERT_TRUE(store) << store.error().detail;
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("is not there"), std::string::npos);
}

TEST_F(SqliteLogDamage, S22_a_service_whose_file_was_refused_closes_it_and_keeps_the_log) {
  const std::string damaged = flipped(log_, commits_[commits_.size() / 2] + 40);
  put(damaged);
  sqlite3* const db = service_connection(path());
  const auto refused = open_sqlite_on(db, test_settings());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("the frame at byte"), std::string::npos) << refused.error();
  sqlite3_close(db);
  EXPECT_EQ(content_of(log_path()), damaged);
  EXPECT_EQ(content_of(path()), database_);
}

// The first process closed the file, so that only the second one's log could say that it is open.
TEST_F(SqliteLogDamage, S22_a_log_that_is_gone_is_missed_although_nothing_was_written_back_since) {
  store_.reset();
  auto again = open(live());
  ASSERT_TRUE(again) << again.error().detail;
  store_ = std::move(*again);
  complete(keys_in_the_log + 1);
  save();
  put_content(path(), database_);
  expect_refused("is not there or empty");
}

TEST_F(SqliteLogDamage, S22_a_log_without_its_database_is_not_deleted) {
  const std::string backup = folder_.file("whole.backup");
  ASSERT_TRUE(sqlite::backup_file(live(), backup, {}));
  for (const bool is_there : {false, true}) {
    put(std::string(), log_);
    if (!is_there) fs::remove(path());
    const auto refused = open(path());
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().detail.find("which SQLite would delete"), std::string::npos)
        << refused.error().detail;
    EXPECT_EQ(content_of(log_path()), log_);
    EXPECT_EQ(fs::exists(path()), is_there);
    const auto looked = sqlite::look_at_file(path(), test_settings(), LookDepth::whole);
    ASSERT_FALSE(looked);
    EXPECT_EQ(looked.error().why, refused.error().detail);
    // A restore would put a file beside it that SQLite must not combine with it.
    const auto restored =
        sqlite::restore_file({.from = backup, .path = path(), .keep_old = is_there});
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().why, refused.error().detail);
    EXPECT_EQ(content_of(log_path()), log_);
  }
}

// Each of these is whole, and SQLite would put the pages of one over newer ones of the other.
class SqliteMixedMoments : public KilledStore {
 protected:
  struct Files {
    std::string database;
    std::string log;
  };
  Files files() const {
    const std::string log = live() + "-wal";
    return {content_of(live()), fs::exists(log) ? content_of(log) : ""};
  }
  void start() {
    auto opened = open(live());
    ASSERT_TRUE(opened) << opened.error().detail;
    store_ = std::move(*opened);
  }
  /// A write-back of the log, while it serves.
  void fill_the_log() {
    const std::string before = content_of(live());
    for (int number = 1'000; content_of(live()) == before; ++number) {
      ASSERT_LT(number, 1'100);
      Reserve verb = a_reserve(number);
      verb.generation = store_->identity().generation;
      const auto outcome = ask_and_wait(*store_, verb);
      ASSERT_TRUE(outcome && is<Execute>(*outcome));
      ASSERT_TRUE(ask_and_wait(*store_, a_complete(std::get<Execute>(*outcome),
                                                   answer(201, std::string(900'000, 'b')))));
    }
  }
  void expect_all_refuse(const std::string& database, const std::string& log,
                         const std::string& part, const std::string& todo) {
    put(database, log);
    const auto refused = open(path());
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().detail.find(part), std::string::npos) << refused.error().detail;
    EXPECT_NE(refused.error().detail.find(todo), std::string::npos) << refused.error().detail;
    EXPECT_TRUE(content_of(path()) == database && content_of(log_path()) == log);
    const auto looked = sqlite::look_at_file(path(), test_settings(), LookDepth::whole);
    EXPECT_EQ(looked ? path() + ": " + looked->contradiction : looked.error().why,
              refused.error().detail);
    const auto report = sqlite::check_file(path(), {});
    EXPECT_TRUE(!report || report->found > 0);
    const auto recovered =
        sqlite::recover_file({.from = path(), .to = folder_.file("recovered.db")});
    ASSERT_FALSE(recovered);
    EXPECT_EQ(recovered.error().why, refused.error().detail);
  }
  void expect_opens(const Files& files) {
    put(files.database, files.log);
    if (files.log.empty()) fs::remove(log_path());
    const auto store = open(path());
    ASSERT_TRUE(store) << store.error().detail;
    EXPECT_EQ(lost_keys(**store), 0);
  }
};

TEST_F(SqliteMixedMoments, S22_an_older_log_beside_a_database_is_refused) {
  const Files early = files();
  complete(keys_in_the_log + 1);
  fill_the_log();
  complete(keys_in_the_log + 2);
  const Files killed = files();
  expect_all_refuse(killed.database, early.log, "is older than the database", "Bring back the log");
  expect_opens(killed);
  store_.reset();
  const Files closed = files();
  for (const std::string& log : {early.log, killed.log}) {
    expect_all_refuse(closed.database, log, "is older than the database", "move the log away");
  }
  expect_opens(closed);
  start();
  expect_all_refuse(files().database, killed.log, "is older than the database", "Bring back");
  complete(keys_in_the_log + 3);
  expect_opens(files());
}

TEST_F(SqliteMixedMoments, S22_an_older_database_beside_a_log_is_refused) {
  const Files early = files();
  store_.reset();
  start();
  complete(keys_in_the_log + 1);
  const Files later = files();
  expect_all_refuse(early.database, later.log, "is older than its log", "Bring back the database");
  fill_the_log();
  complete(keys_in_the_log + 2);
  expect_all_refuse(later.database, files().log, "is older than its log", "Bring back");
  expect_opens(files());
}

TEST_F(SqliteMixedMoments, S22_the_log_of_another_store_is_refused) {
  store_.reset();
  const Files closed = files();
  const std::string other = folder_.file("other.db");
  {
    const auto store = open(other);
    ASSERT_TRUE(store) << store.error().detail;
    expect_all_refuse(closed.database, content_of(other + "-wal"), "is another store's",
                      "move the log away");
  }
  expect_opens(closed);
}

TEST_F(SqliteLogDamage, S22_a_closed_store_needs_no_log) {
  store_.reset();
  EXPECT_FALSE(fs::exists(live() + "-wal"));
  const auto store = open(live());
  ASSERT_TRUE(store) << store.error().detail;
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(lost_keys(**store), 0);
}

TEST_F(SqliteLogDamage, S22_a_log_of_big_endian_words_is_read_alike) {
  // As SQLite writes it on such a machine: the magic number's last bit, and sums of those words.
  std::string log = log_;
  log[3] = static_cast<char>(0x83);
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  const auto add = [&](std::size_t from, std::size_t size) {
    for (std::size_t at = from; at < from + size; at += 8) {
      first += log_number_at(log, at) + second;
      second += log_number_at(log, at + 4) + first;
    }
  };
  const auto put_sum = [&](std::size_t at) {
    for (std::size_t i = 0; i < 4; ++i) {
      log[at + i] = static_cast<char>(first >> (24 - 8 * i));
      log[at + 4 + i] = static_cast<char>(second >> (24 - 8 * i));
    }
  };
  add(0, 24);
  put_sum(24);
  for (std::size_t at = log_header_size; at < log.size(); at += log_frame_size) {
    add(at, 8);
    add(at + 24, 4'096);
    put_sum(at + 16);
  }
  put(log);
  EXPECT_EQ(judged(), LogKind::whole);
  put(flipped(log, commits_[5] + 500));
  expect_refused(fmt::format("the frame at byte {}", commits_[5]));
  put(log);
  const auto store = open(path());
  ASSERT_TRUE(store) << store.error().detail;
  EXPECT_EQ(lost_keys(**store), 0) << "as SQLite reads it";
}

}  // namespace
}  // namespace idem::test
