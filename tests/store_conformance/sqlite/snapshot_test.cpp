#include "store/sqlite/snapshot.hpp"
#include "store/sqlite/check_file.hpp"
#include "store/sqlite/log_lock.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"
#include "store_conformance/log/runs.hpp"

#include <filesystem>

/// A file is read beside its owner, who keeps committing: as of one moment, or not at all.
namespace idem::test {
namespace {

class SqliteSnapshot : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_sqlite(path(), test_settings(), {.host = clock_.host()});
    ASSERT_TRUE(opened) << opened.error().detail;
    store_ = std::move(*opened);
  }
  std::string path() const { return folder_.file("idem.db"); }

  std::expected<ReserveOutcome, StoreError> reserve() {
    Reserve verb = a_reserve(++number_);
    verb.generation = store_->identity().generation;
    return ask_and_wait(*store_, verb);
  }
  bool settle(const ReserveOutcome& granted, std::size_t body_bytes) {
    StoredResponse response{.status = 201, .headers = {}, .body = std::string(body_bytes, 'b')};
    const auto done =
        ask_and_wait(*store_, a_complete(std::get<Execute>(granted), std::move(response)));
    settled_ += done ? 1 : 0;
    return done.has_value();
  }
  void complete(int count, std::size_t body_bytes = 1) {
    for (int i = 0; i < count; ++i) {
      const auto outcome = reserve();
      ASSERT_TRUE(outcome && is<Execute>(*outcome));
      ASSERT_TRUE(settle(*outcome, body_bytes));
    }
  }
  /// More than limits::sqlite_wal_pages_max.
  void fill_log() { complete(60, 640UL * 1024); }
  static std::string records(sqlite::Snapshot& snapshot) {
    return sqlite::text_value(snapshot.db(), "SELECT count(*) FROM idem_slots").value_or("none");
  }
  std::uintmax_t database_bytes() const { return std::filesystem::file_size(path()); }

  TempFolder folder_;
  TestClock clock_;
  std::unique_ptr<Store> store_;
  int number_ = 0;
  int settled_ = 0;  ///< Running ones are in another table.
};

TEST_F(SqliteSnapshot, the_owner_commits_and_does_not_write_back_while_it_is_read) {
  complete(3);
  auto snapshot = sqlite::Snapshot::open(path());
  ASSERT_TRUE(snapshot) << snapshot.error().why;
  const auto before = database_bytes();
  fill_log();
  EXPECT_EQ(records(**snapshot), "3");
  EXPECT_TRUE((*snapshot)->is_sound());
  EXPECT_EQ(database_bytes(), before);
  snapshot->reset();
  complete(1);
  EXPECT_GT(database_bytes(), before) << "written back after the reader had gone";
}

// The file itself has to say that it is open before anyone can miss its log.
TEST_F(SqliteSnapshot, S22_a_log_that_a_reader_kept_is_written_back_though_only_reads_follow) {
  complete(3);
  const std::string killed = folder_.file("killed.db");
  for (const char* const part : {"", "-wal"}) {
    std::filesystem::copy_file(path() + part, killed + part);
  }
  auto reading = sqlite::LogLock::for_reading(killed + "-wal");
  ASSERT_TRUE(reading) << reading.error();
  auto opened = open_sqlite(killed, test_settings(), {.host = clock_.host()});
  ASSERT_TRUE(opened) << opened.error().detail;
  store_ = std::move(*opened);
  complete(1);
  const std::string before = content_of(killed);
  {
    const auto ended = std::move(*reading);
  }
  ASSERT_TRUE(ask_and_wait(*store_, Count{}));
  ASSERT_TRUE(ask_and_wait(*store_, Count{}));  // After the work that followed the first one.
  EXPECT_TRUE(content_of(killed) != before) << "nothing was written back";
}

// SQLite does not count a table that is made as a change.
TEST_F(SqliteSnapshot, S22_tables_that_a_service_makes_let_no_log_grow) {
  std::uintmax_t largest = 0;
  for (int round = 0; round < 24; ++round) {
    const auto made = store_->transactions()->run(
        round % 2 == 0 ? "CREATE TABLE report AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                         "i + 1 FROM n WHERE i < 1500) SELECT hex(zeroblob(1000)) AS line FROM n"
                       : "DROP TABLE report",
        {});
    ASSERT_TRUE(made) << made.error();
    largest = std::max(largest, std::filesystem::file_size(path() + "-wal"));
  }
  EXPECT_LT(largest, 24U << 20) << "the log is bounded";
}

TEST_F(SqliteSnapshot, one_that_met_the_new_beginning_of_the_log_is_read_again) {
  // Until a commit has just written all of it back: the next one begins the log anew.
  const auto before = database_bytes();
  const auto is_written_back = [&] {
    EXPECT_TRUE(ask_and_wait(*store_, Count{}));  // After the work that followed the call before.
    return database_bytes() != before;
  };
  while (number_ < 200) {
    const auto outcome = reserve();
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    if (is_written_back()) break;
    ASSERT_TRUE(settle(*outcome, 640UL * 1024));
    if (is_written_back()) break;
  }
  int reads = 0;
  const auto done = sqlite::with_snapshot(
      path(), [&](sqlite::Snapshot& snapshot) -> std::expected<void, StoreFileError> {
        if (++reads == 1) {
          complete(1);
          EXPECT_FALSE(snapshot.is_sound());
          return {};
        }
        const int of_then = settled_;
        complete(1);
        EXPECT_EQ(records(snapshot), std::to_string(of_then));
        return {};
      });
  EXPECT_TRUE(done) << done.error().why;
  EXPECT_EQ(reads, 2);
}

TEST_F(SqliteSnapshot, one_whose_owner_ends_is_read_again) {
  complete(2);
  int reads = 0;
  const auto done = sqlite::with_snapshot(
      path(), [&](sqlite::Snapshot& snapshot) -> std::expected<void, StoreFileError> {
        store_.reset();
        // What the first one reads now may be anything.
        if (++reads == 2) {
          EXPECT_EQ(records(snapshot), "2");
        }
        return {};
      });
  EXPECT_TRUE(done) << done.error().why;
  EXPECT_EQ(reads, 2);
}

TEST_F(SqliteSnapshot, a_check_survives_the_end_of_the_owner) {
  complete(2);
  auto snapshot = sqlite::Snapshot::open(path());
  ASSERT_TRUE(snapshot) << snapshot.error().why;
  store_.reset();
  // It says something, and does not end the process; with_snapshot() asks once more.
  (void)sqlite::check_database((*snapshot)->db(), path(), {});
  EXPECT_FALSE((*snapshot)->is_sound());
}

TEST_F(SqliteSnapshot, it_changes_nothing_and_leaves_no_file) {
  complete(2);
  store_.reset();
  const auto before = std::filesystem::last_write_time(path());
  const auto report = sqlite::check_file(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->found, 0U);
  EXPECT_EQ(report->by_state[static_cast<std::size_t>(State::completed)], 2U);
  EXPECT_EQ(std::filesystem::last_write_time(path()), before);
  EXPECT_FALSE(std::filesystem::exists(path() + "-wal"));
}

}  // namespace
}  // namespace idem::test
