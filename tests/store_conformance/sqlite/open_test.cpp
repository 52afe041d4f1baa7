#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <fstream>

/// The embedded store and the file that it is given.
namespace idem::test {
namespace {

class SqliteOpen : public testing::Test {
 protected:
  std::string path() const { return folder.file("idem.db"); }

  std::expected<std::unique_ptr<Store>, StoreError> open(
      const IdentitySettings& settings = test_settings(), bool migrate = false) {
    return open_sqlite(path(), settings, {.migrate = migrate, .host = clock.host()});
  }

  /// The reason why it is refused.
  std::string refusal(const IdentitySettings& settings = test_settings()) {
    const auto store = open(settings);
    if (!store) return store.error().detail;
    ADD_FAILURE() << "was opened";
    return {};
  }

  void sql(const std::string& text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_close(db);
  }

  void make_store(int records = 1) {
    const auto store = open();
    ASSERT_TRUE(store) << store.error().detail;
    for (int i = 0; i < records; ++i) {
      Reserve verb = a_reserve(1);
      verb.id.bytes[0] = static_cast<std::uint8_t>(i);
      verb.id.bytes[1] = static_cast<std::uint8_t>(i >> 8);
      verb.generation = (*store)->identity().generation;
      const auto outcome = ask_and_wait(**store, verb);
      ASSERT_TRUE(outcome && is<Execute>(*outcome));
      ASSERT_TRUE(ask_and_wait(**store, a_complete(std::get<Execute>(*outcome))));
    }
  }

  std::string bytes() {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& content) {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << content;
  }

  TestClock clock;
  TempFolder folder;
};

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(SqliteOpen, S02_the_secret_is_made_once_and_kept) {
  auto store = open();
  ASSERT_TRUE(store);
  const Identity first = (*store)->identity();
  EXPECT_EQ(first.generation, 1u);
  EXPECT_NE(first.secret, decltype(first.secret){});
  store->reset();
  store = open();
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->identity().secret, first.secret);
  EXPECT_EQ((*store)->identity().generation, first.generation);
}

TEST_F(SqliteOpen, S02_other_settings_are_refused_by_name) {
  make_store();
  const std::string key_scope = refusal({"tenant", test_settings().scope_source});
  expect_part(key_scope, "key.scope is 'operation'");
  expect_part(key_scope, "'tenant'");
  expect_part(key_scope, path());
  expect_part(refusal({"operation", "jwt:sub"}), "scope.from is 'header:X-Tenant-Id'");
  EXPECT_TRUE(open()) << "the refusals changed nothing";
}

TEST_F(SqliteOpen, S02_the_file_is_for_its_owner_alone) {
  make_store();
  struct stat status{};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(SqliteOpen, S02_an_empty_file_is_a_new_store) {
  write("");
  EXPECT_TRUE(open());
}

TEST_F(SqliteOpen, T01_a_file_that_is_open_is_refused) {
  const auto store = open();
  ASSERT_TRUE(store);
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, StoreError::Code::unavailable);
  expect_part(second.error().detail, "another process owns " + path());
}

TEST_F(SqliteOpen, T30_a_file_that_is_no_database_is_refused_and_left_alone) {
  const std::string garbage(20'000, 'g');
  write(garbage);
  const std::string why = refusal();
  expect_part(why, "not a database");
  expect_part(why, path());
  EXPECT_EQ(bytes(), garbage);
}

TEST_F(SqliteOpen, T30_a_corrupt_file_is_refused) {
  make_store(600);
  std::string content = bytes();
  ASSERT_GT(content.size(), 20 * 4096u);
  for (std::size_t page = 8; page < 14; ++page) content.replace(page * 4096, 2'000, 2'000, '\xaa');
  write(content);
  const std::string why = refusal();
  expect_part(why, "corrupt");
  expect_part(why, path());
}

TEST_F(SqliteOpen, T30_a_store_without_its_tables_is_refused) {
  make_store();
  sql("DROP TABLE idem_running");
  expect_part(refusal(), "the definition of idem_running is missing");
}

TEST_F(SqliteOpen, T30_a_running_record_without_its_id_closes_the_store) {
  make_store();
  sql("INSERT INTO idem_running VALUES (1, x'00', 0, x'00')");
  expect_part(refusal(), "a running record has lost its id");
}

TEST_F(SqliteOpen, T30_a_store_without_its_secret_is_refused) {
  make_store();
  sql("DELETE FROM idem_meta WHERE name = 'secret'");
  expect_part(refusal(), "'secret' in idem_meta is missing");
}

TEST_F(SqliteOpen, T30_another_programs_database_is_refused_and_left_alone) {
  sql("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)");
  const std::string before = bytes();
  expect_part(refusal(), "another program's database");
  EXPECT_EQ(bytes(), before);
}

TEST_F(SqliteOpen, S02_a_newer_schema_is_refused) {
  make_store();
  sql("PRAGMA user_version = 99");
  expect_part(refusal(), "schema version 99");
}

TEST_F(SqliteOpen, S02_an_older_schema_waits_for_migrate) {
  write("");
  sql("PRAGMA application_id = 1229210957");  // "IDEM", of a version before the first.
  expect_part(refusal(), "--migrate");
  EXPECT_TRUE(open(test_settings(), true));
  EXPECT_TRUE(open());
}

TEST_F(SqliteOpen, S02_a_file_from_before_the_first_release_is_refused_and_left_alone) {
  make_store();
  for (const std::string version : {"1", "2", "7", "8"}) {
    sql("PRAGMA application_id = 1231316333; PRAGMA user_version = " + version);  // "Idem"
    const std::string before = bytes();
    for (const bool migrate : {false, true}) {
      const auto store = open(test_settings(), migrate);
      ASSERT_FALSE(store) << version;
      expect_part(store.error().detail, "before the first release");
      expect_part(store.error().detail, path());
    }
    EXPECT_EQ(bytes(), before);
  }
}

TEST_F(SqliteOpen, S02_an_impossible_path_is_refused_with_a_sentence) {
  const auto why = [&](const std::string& where) {
    const auto store = open_sqlite(where, test_settings());
    return store ? std::string("was opened") : store.error().detail;
  };
  expect_part(why(folder.file("no/such/idem.db")), "does not exist");
  expect_part(why(""), "empty");
  expect_part(why(folder.file("")), "idem-store");
}

TEST_F(SqliteOpen, S02_names_that_sqlite_reads_otherwise_are_files) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(path()).parent_path());
  for (const std::string name : {":memory:", "file:x?mode=memory"}) {
    EXPECT_TRUE(open_sqlite(name, test_settings())) << name;
    EXPECT_TRUE(std::filesystem::exists(folder.file(name))) << name;
  }
  std::filesystem::current_path(before);
}

TEST_F(SqliteOpen, S02_no_fence_is_granted_twice_over_restarts) {
  Fence last = 0;
  for (int start = 0; start < 5; ++start) {
    const auto store = open();
    ASSERT_TRUE(store);
    Reserve verb = a_reserve(start);
    verb.generation = 1;
    const auto outcome = ask_and_wait(**store, verb);
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    EXPECT_GT(std::get<Execute>(*outcome).attempt.fence, last);
    last = std::get<Execute>(*outcome).attempt.fence;
  }
}

TEST_F(SqliteOpen, S15_a_jump_of_the_wall_clock_between_two_starts_expires_nothing) {
  make_store();
  for (const Millis jump : {Millis(24h * 3650), Millis(-24h * 3650)}) {
    HostClock host = clock.host();
    host.wall = [wall = host.wall, jump] { return wall() + jump; };
    const auto store = open_sqlite(path(), test_settings(), {.host = host});
    ASSERT_TRUE(store);
    EXPECT_TRUE(ask_and_wait(**store, Reap{100})->empty());
    const auto records = ask_and_wait(**store, List{});
    ASSERT_EQ(records->size(), 1u);
    EXPECT_EQ(records->front().state, State::completed);
  }
}

// ---- rows that cannot be read ----

class SqliteCorruptRow : public SqliteOpen {
 protected:
  void SetUp() override {
    make_store(3);  // Keys 0, 1 and 2 in their first byte.
    clock.advance(1s);
  }

  Reserve again(int number) {
    Reserve verb = a_reserve(1, 2);
    verb.id.bytes[0] = static_cast<std::uint8_t>(number);
    verb.id.bytes[1] = 0;
    verb.generation = 1;
    return verb;
  }

  /// SQL: the record with its byte number `at`, from 0, replaced.
  static std::string with_byte(int at, int byte) {
    return fmt::format("CAST(substr(record, 1, {}) || x'{:02x}' || substr(record, {}) AS BLOB)", at,
                       byte, at + 2);
  }

  void expect_only_this_call_is_refused(const std::string& tampering) {
    sql(tampering + " WHERE slot = 2");
    const auto store = open();
    ASSERT_TRUE(store) << store.error().detail;
    for (int round = 0; round < 2; ++round) {
      const auto reply = ask_and_wait(**store, again(1));
      ASSERT_FALSE(reply) << tampering;
      EXPECT_EQ(reply.error().code, StoreError::Code::damaged);
      EXPECT_TRUE(is<Replay>(*ask_and_wait(**store, again(0))));
      EXPECT_TRUE(is<Replay>(*ask_and_wait(**store, again(2))));
    }
  }
};

TEST_F(SqliteCorruptRow, T30_a_state_that_is_none_of_ours) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET state = 99");
}
TEST_F(SqliteCorruptRow, T30_a_state_that_is_not_the_records) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET state = 4");
}
TEST_F(SqliteCorruptRow, T30_a_running_state_among_those_that_do_not_run) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET state = 2, record = " + with_byte(1, 2));
}
TEST_F(SqliteCorruptRow, T30_a_record_that_is_cut_short) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET record = substr(record, 1, 50)");
}
TEST_F(SqliteCorruptRow, T30_a_record_with_more_behind_it) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET record = CAST(record || x'00' AS BLOB)");
}
TEST_F(SqliteCorruptRow, T30_a_record_without_bytes) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET record = x''");
}
TEST_F(SqliteCorruptRow, T30_a_completed_record_without_its_moments) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET record = " + with_byte(4, 1));
}
TEST_F(SqliteCorruptRow, T30_fields_that_cannot_be_decoded) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET answer = x'01c9000109000000ff'");
}
TEST_F(SqliteCorruptRow, T30_an_answer_of_a_later_schema) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET answer = x'02c90001'");
}
TEST_F(SqliteCorruptRow, T30_a_status_that_is_none) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET answer = x'01f9ff01'");
}
TEST_F(SqliteCorruptRow, T30_an_answer_that_is_missing) {
  expect_only_this_call_is_refused("UPDATE idem_slots SET answer = NULL");
}

TEST_F(SqliteCorruptRow, T30_an_id_found_twice_among_the_settled_is_refused) {
  sql("INSERT INTO idem_slots SELECT 9, id, state, due_at, claim_at, record, answer, body FROM "
      "idem_slots"
      " WHERE slot = 2");
  const auto store = open();
  ASSERT_TRUE(store) << store.error().detail;
  EXPECT_FALSE(ask_and_wait(**store, again(1)));
  EXPECT_TRUE(is<Replay>(*ask_and_wait(**store, again(0))));
  clock.advance(retention);
  std::size_t reaped = 0;
  std::size_t damaged = 0;
  for (int round = 0; round < 6; ++round) {
    const auto steps = ask_and_wait(**store, Reap{1});
    ASSERT_TRUE(steps);
    for (const LifecycleStep& step : *steps) {
      ++(step.damaged ? damaged : reaped);
    }
  }
  EXPECT_EQ(reaped, 2u) << "it blocks no other record";
  EXPECT_EQ(damaged, 1u) << "and is reported once";
  EXPECT_FALSE(ask_and_wait(**store, again(1))) << "and is still not run";
}

// Two ids that begin with the same eight bytes: far less likely than a rotten row, so refused.
TEST_F(SqliteCorruptRow, S02_an_id_that_begins_like_another_is_refused_and_not_run) {
  const auto store = open();
  ASSERT_TRUE(store);
  Reserve twin = again(1);
  twin.id.bytes[15] ^= 1;
  const auto refused = ask_and_wait(**store, twin);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StoreError::Code::damaged);
  EXPECT_TRUE(is<Replay>(*ask_and_wait(**store, again(1)))) << "the first keeps its own";
}

// One of the file's copies of an id rots and the other does not: as the disk does it, past SQLite.
TEST_F(SqliteCorruptRow, T30_an_id_that_rotted_in_its_row_is_not_run_again) {
  const RecordId id = again(1).id;
  std::string bytes;
  {
    std::ifstream file(path(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::string_view wanted(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
  int copies = 0;
  for (auto at = bytes.find(wanted); at != std::string::npos; at = bytes.find(wanted, at + 1)) {
    std::string copy = bytes;
    copy[at + 3] ^= 1;
    {
      std::ofstream file(path(), std::ios::binary | std::ios::trunc);
      file << copy;
    }
    ++copies;
    const auto store = open();
    if (!store) continue;  // Refused as a whole: nothing is run.
    const auto reply = ask_and_wait(**store, again(1));
    EXPECT_FALSE(reply && is<Execute>(*reply)) << "copy at byte " << at;
  }
  EXPECT_GE(copies, 2) << "in the row, and in an index";
}

TEST_F(SqliteCorruptRow, T30_a_settled_record_that_lost_its_id_refuses_the_start) {
  sql("UPDATE idem_slots SET id = x'01' WHERE slot = 2");
  const auto store = open();
  ASSERT_FALSE(store);
  expect_part(store.error().detail, "lost its id");
}

TEST_F(SqliteCorruptRow, T30_it_blocks_no_other_record) {
  sql("UPDATE idem_slots SET record = " + with_byte(2, 9) + " WHERE slot = 2");
  clock.advance(retention);
  const auto store = open();
  ASSERT_TRUE(store);
  std::size_t reaped = 0;
  for (int round = 0; round < 6; ++round) reaped += ask_and_wait(**store, Reap{1})->size();
  EXPECT_GE(reaped, 1u);
  const auto records = ask_and_wait(**store, List{});
  ASSERT_EQ(records->size(), 2u) << "a listing leaves it out";
  for (const Record& record : *records) EXPECT_EQ(record.state, State::expired);
}

TEST_F(SqliteCorruptRow, T30_a_pending_request_that_is_missing_does_not_stop_the_dispatcher) {
  {
    const auto store = open();
    ASSERT_TRUE(store);
    for (const int number : {11, 12}) {
      Accept verb = an_accept(number);
      verb.as.generation = 1;
      ASSERT_TRUE(ask_and_wait(**store, verb));
    }
  }
  sql(fmt::format(
      "DELETE FROM idem_requests WHERE slot = (SELECT slot FROM idem_slots WHERE id = x'{}')",
      to_hex(key(11).bytes)));
  const auto store = open();
  ASSERT_TRUE(store);
  const Claim claim{token(50), "dispatcher", lease, true};
  EXPECT_FALSE(ask_and_wait(**store, claim));
  const auto second = ask_and_wait(**store, claim);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->id, key(12));
  clock.advance(retention);
  bool timed_out = false;
  const auto steps = ask_and_wait(**store, Sweep{10});
  for (const auto& step : *steps) timed_out |= step.id == key(11);
  EXPECT_TRUE(timed_out) << "its client gets a 408 in the end";
}

}  // namespace
}  // namespace idem::test
