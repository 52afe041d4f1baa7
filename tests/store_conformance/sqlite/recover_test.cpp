#include "core/record/restore_note.hpp"
#include "store/sqlite/backup_file.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/recover_file.hpp"
#include "store/sqlite/restore_file.hpp"
#include "store_conformance/sqlite/killed_store.hpp"

#include <sqlite3.h>

#include <set>

/// A store that is made of what can be read of a damaged one.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

class SqliteRecovery : public KilledStore {
 protected:
  std::string made() const { return folder_.file("recovered.db"); }

  std::expected<Recovered, StoreFileError> recover() {
    fs::remove(made());
    return sqlite::recover_file({.from = path(), .to = made()});
  }

  /// The new store is whole, and the old one as it was. How many keys would run again.
  int lost_by_recovery() {
    const std::string database = content_of(path());
    const std::string log = content_of(log_path());
    const auto recovered = recover();
    EXPECT_TRUE(recovered) << recovered.error().why;
    if (!recovered) return -1;
    EXPECT_EQ(content_of(path()), database);
    EXPECT_EQ(content_of(log_path()), log);
    EXPECT_EQ(recovered->made.found, 0U);
    EXPECT_EQ(names(), (std::set<std::string>{"idem.db", "idem.db-wal", "live.db", "live.db-wal",
                                              "recovered.db"}));
    lacks_ = recovered->lacks_keys;
    const auto store = open(made());
    EXPECT_TRUE(store) << store.error().detail;
    return store ? keys_that_run(**store) : -1;
  }

  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(fs::path(path()).parent_path())) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  int keys_that_run(Store& store) {
    int run = 0;
    for (int number = 1; number <= keys_in_the_log; ++number) {
      Reserve again = a_reserve(number, 2);
      again.generation = store.identity().generation;
      const auto outcome = ask_and_wait(store, again);
      EXPECT_TRUE(outcome);
      if (outcome && is<Execute>(*outcome)) ++run;
    }
    return run;
  }

  bool lacks_ = false;
};

TEST_F(SqliteRecovery, S22_of_a_damaged_frame_no_key_is_lost_that_a_later_page_has) {
  for (std::size_t commit = 4; commit + 2 < commits_.size(); commit += 3) {
    SCOPED_TRACE(commit);
    put(flipped(log_, commits_[commit] + 900));
    // The last rows of the page may be those of the next commit.
    EXPECT_EQ(lost_by_recovery(), 0);
    EXPECT_TRUE(lacks_);
  }
}

TEST_F(SqliteRecovery, S22_of_a_damaged_header_the_log_is_read_all_the_same) {
  for (const std::size_t at : {1, 5, 9, 13, 17, 21, 25, 29}) {
    SCOPED_TRACE(at);
    put(flipped(log_, at));
    EXPECT_EQ(lost_by_recovery(), 0);
  }
}

TEST_F(SqliteRecovery, S03_S22_answers_stay_and_what_was_open_becomes_unknown) {
  Reserve open_one = a_reserve(100);
  open_one.generation = store_->identity().generation;
  const auto running = ask_and_wait(*store_, open_one);
  ASSERT_TRUE(running && is<Execute>(*running));
  const Fence fence = std::get<Execute>(*running).attempt.fence;
  complete(101);
  save();
  put(flipped(log_, commits_[6] + 900));
  const auto recovered = recover();
  ASSERT_TRUE(recovered) << recovered.error().why;
  EXPECT_EQ(recovered->made.by_state[static_cast<std::size_t>(State::unknown)], 1U);
  ASSERT_TRUE(recovered->lacks_from);
  EXPECT_EQ(recovered->made.store_id,
            sqlite::look_at_file(path(), test_settings(), LookDepth::identity)->store_id);
  const auto store = open(made());
  ASSERT_TRUE(store) << store.error().detail;
  const auto record = ask_and_wait(**store, Find{key(100)});
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->state, State::unknown);
  EXPECT_EQ((*record)->fence(), fence) << "evidence about the attempt still counts";
  const auto replayed = ask_and_wait(**store, [&] {
    Reserve again = a_reserve(101, 2);
    again.generation = (*store)->identity().generation;
    return again;
  }());
  ASSERT_TRUE(replayed && is<Replay>(*replayed));
  EXPECT_EQ(std::get<Replay>(*replayed).response, answer());
}

TEST_F(SqliteRecovery, S22_a_page_of_the_database_that_cannot_be_read_costs_no_other_rows) {
  for (int number = keys_in_the_log + 1; number <= 212; ++number) complete(number);
  store_.reset();
  database_ = content_of(live());
  // A leaf of the table of records: begins with 13, and has ids in it.
  std::vector<std::size_t> leaves;
  for (std::size_t at = 4'096; at < database_.size(); at += 4'096) {
    if (database_[at] == 13) leaves.push_back(at);
  }
  ASSERT_GT(leaves.size(), 4U);
  std::string damaged = database_;
  damaged.replace(leaves[leaves.size() - 2], 64, 64, '\x7f');
  put_content(path(), damaged);
  fs::remove(log_path());
  const auto refused = open(path());
  ASSERT_FALSE(refused);
  const auto recovered = recover();
  ASSERT_TRUE(recovered) << recovered.error().why;
  EXPECT_TRUE(recovered->lacks_keys);
  EXPECT_EQ(recovered->made.found, 0U);
  const auto kept = recovered->made.by_state[static_cast<std::size_t>(State::completed)];
  EXPECT_GT(kept, 150U);
  EXPECT_LT(kept, 212U);
  EXPECT_EQ(content_of(path()), damaged);
}

TEST_F(SqliteRecovery, S22_a_restore_of_what_was_recovered_says_from_when_on_keys_may_be_missing) {
  put(flipped(log_, commits_[6] + 900));
  const auto recovered = recover();
  ASSERT_TRUE(recovered && recovered->lacks_from);
  EXPECT_EQ(recovered->made.copied_at, recovered->lacks_from);
  const std::string place = folder_.file("in place.db");
  const auto restored = sqlite::restore_file({.from = made(), .path = place});
  ASSERT_TRUE(restored) << restored.error().why;
  const auto store = open(place);
  ASSERT_TRUE(store) << store.error().detail;
  const auto lines = ask_and_wait(**store, ReadLines{std::string(restores_journal)});
  ASSERT_TRUE(lines);
  const auto note = last_restore(lines->lines);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->copied_at, recovered->lacks_from);
}

TEST_F(SqliteRecovery, S22_a_cut_database_costs_no_more_than_the_pages_that_are_gone) {
  for (int number = keys_in_the_log + 1; number <= 212; ++number) complete(number);
  store_.reset();
  const std::string whole = content_of(live());
  put_content(path(), whole.substr(0, whole.size() - 4'096));
  ASSERT_FALSE(open(path()));
  const auto recovered = recover();
  ASSERT_TRUE(recovered) << recovered.error().why;
  EXPECT_TRUE(recovered->lacks_keys && !recovered->lacks_from);
  EXPECT_EQ(recovered->made.found, 0U);
  EXPECT_GT(recovered->made.by_state[static_cast<std::size_t>(State::completed)], 150U);
}

TEST_F(SqliteRecovery, S22_a_database_that_is_gone_beside_its_log_is_named) {
  put(log_);
  for (const bool is_empty : {true, false}) {
    fs::remove(path());
    if (is_empty) put_content(path(), "");
    const auto recovered = recover();
    ASSERT_FALSE(recovered);
    EXPECT_NE(recovered.error().why.find("bring the file back"), std::string::npos)
        << recovered.error().why;
    EXPECT_FALSE(fs::exists(made()));
  }
}

// It knows no key of after the backup, and no restore of it may say that it does.
TEST_F(SqliteRecovery, S22_what_is_recovered_of_a_copy_lacks_what_the_copy_lacks) {
  fs::remove(path());
  const auto backup = sqlite::backup_file(live(), path(), {});
  ASSERT_TRUE(backup && backup->copied_at);
  for (int turn = 0; turn < 2; ++turn) {
    const auto recovered = recover();
    ASSERT_TRUE(recovered) << recovered.error().why;
    EXPECT_TRUE(recovered->lacks_keys);
    EXPECT_EQ(recovered->lacks_from, backup->copied_at);
    EXPECT_EQ(recovered->made.copied_at, backup->copied_at);
    fs::remove(path());
    fs::copy_file(made(), path());  // Of what was recovered the same holds.
  }
}

TEST_F(SqliteRecovery, S22_a_completed_record_without_its_answer_becomes_unknown) {
  store_.reset();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(live().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(db, "UPDATE idem_slots SET body = CAST(body || 'x' AS BLOB) WHERE slot = 3",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(db);
  fs::copy_file(live(), path());
  const auto recovered = recover();
  ASSERT_TRUE(recovered) << recovered.error().why;
  EXPECT_FALSE(recovered->lacks_keys);
  EXPECT_EQ(recovered->made.found, 0U);
  EXPECT_EQ(recovered->made.by_state[static_cast<std::size_t>(State::unknown)], 1U);
  EXPECT_EQ(recovered->made.by_state[static_cast<std::size_t>(State::completed)],
            static_cast<std::uint64_t>(keys_in_the_log - 1));
}

TEST_F(SqliteRecovery, S22_the_tables_of_a_service_come_along) {
  store_.reset();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(live().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE orders (id); INSERT INTO orders VALUES (7)", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  fs::copy_file(live(), path());
  ASSERT_TRUE(recover());
  ASSERT_EQ(sqlite3_open(made().c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite::text_value(db, "SELECT id FROM orders"), "7");
  sqlite3_close(db);
}

}  // namespace
}  // namespace idem::test
