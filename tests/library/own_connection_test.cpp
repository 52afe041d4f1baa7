#include <idem/postgres.hpp>
#include <idem/sqlite.hpp>

#include "library/guarded.hpp"

#include <sqlite3.h>

/// A service's own SQLite: the connection below a transaction, and a store on one that the service
/// opened.
namespace idem::test {
namespace {

int run(sqlite3* db, const std::string& sql) {
  return sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
}

std::string ask(sqlite3* db, const std::string& sql) {
  std::string answer = "nothing";
  const auto keep = [](void* out, int, char** cells, char**) {
    *static_cast<std::string*>(out) = cells[0] == nullptr ? "null" : cells[0];
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), keep, &answer, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  return answer;
}

using Lent = Guarded;

INSTANTIATE_TEST_SUITE_P(Stores, Lent, testing::Values("sqlite", "sqlite_own", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Lent, S17_rows_of_the_connection_itself_are_committed_with_the_answer_or_not_at_all) {
  if (GetParam() == "postgres") {
    const auto answer = serve(payment("k"), [](Transaction& tx) -> Outcome {
      EXPECT_EQ(sqlite_connection(tx), nullptr);
      return Response{};
    });
    EXPECT_EQ(answer.status, 200);
    return;
  }
  const auto paying_itself = [](Outcome outcome) {
    return [=](Transaction& tx) -> Outcome {
      EXPECT_EQ(postgres_connection(tx), nullptr);
      sqlite3* const db = sqlite_connection(tx);
      EXPECT_NE(db, nullptr);
      EXPECT_EQ(run(db, "INSERT INTO payments VALUES (hex(randomblob(8)), 5)"), SQLITE_OK);
      EXPECT_EQ(tx.run("SELECT * FROM payments").size(), 1U) << "the same transaction";
      return outcome;
    };
  };
  EXPECT_EQ(serve(payment("k"), paying_itself(NotExecuted{{409, {}, "no"}})).body, "no");
  EXPECT_EQ(payments(), 0);
  const auto first = serve(payment("k"), paying_itself(Response{201, {}, "paid"}));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, serve(payment("k"), paying_itself(Response{}))));
  EXPECT_EQ(payments(), 1);
}

TEST_P(Lent, T30_the_connection_itself_gets_no_further_than_any_statement) {
  if (GetParam() == "postgres") return;
  const auto answer = serve(payment("k"), [](Transaction& tx) -> Outcome {
    sqlite3* const db = sqlite_connection(tx);
    for (const std::string statement :
         {"COMMIT", "ROLLBACK", "SAVEPOINT mine", "PRAGMA foreign_keys = OFF",
          "ATTACH ':memory:' AS other", "DELETE FROM idem_slots",
          "UPDATE idem_running SET record = x''", "CREATE TEMP TABLE idem_slots (id)"}) {
      EXPECT_EQ(run(db, statement), SQLITE_AUTH) << statement;
    }
    EXPECT_EQ(sqlite3_get_autocommit(db), 0);
    return paying()(tx);
  });
  EXPECT_EQ(answer.status, 201) << answer.body;
}

TEST_P(Lent, T57_work_that_leaves_something_on_the_connection_is_rolled_back) {
  if (GetParam() == "postgres") return;
  sqlite3_stmt* statement = nullptr;
  const auto returning = [&](Transaction& tx) -> Outcome {
    sqlite3* const db = sqlite_connection(tx);
    if (statement == nullptr) {
      EXPECT_EQ(sqlite3_prepare_v2(db, "INSERT INTO payments VALUES ('p', 5) RETURNING id", -1,
                                   &statement, nullptr),
                SQLITE_OK);
    }
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    return Response{201, {}, "paid"};
  };
  EXPECT_EQ(serve(payment("k"), returning).status, 500);
  EXPECT_EQ(payments(), 0);
  const auto hooking = [&](Transaction& tx) -> Outcome {
    const auto none = [](void*) { return 0; };
    sqlite3_commit_hook(sqlite_connection(tx), none, nullptr);
    return paying()(tx);
  };
  EXPECT_EQ(serve(payment("k"), hooking).status, 500);
  EXPECT_EQ(payments(), 0);
  const auto finished = [&](Transaction& tx) -> Outcome {
    Outcome outcome = returning(tx);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
    EXPECT_EQ(sqlite3_finalize(statement), SQLITE_OK);
    return outcome;
  };
  EXPECT_EQ(serve(payment("k"), finished).status, 201);
  EXPECT_EQ(payments(), 1);
}

/// A connection that the test opens.
class OwnConnection : public testing::Test {
 protected:
  ~OwnConnection() override { close(); }
  void close() {
    EXPECT_EQ(sqlite3_close(db_), SQLITE_OK);
    db_ = nullptr;
  }
  void open(const std::string& setup = own_connection_setup,
            int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI) {
    open_at(path_, setup, flags);
  }
  void open_at(const std::string& path, const std::string& setup,
               int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI) {
    close();
    ASSERT_EQ(sqlite3_open_v2(path.c_str(), &db_, flags, nullptr), SQLITE_OK);
    ASSERT_EQ(run(db_, setup), SQLITE_OK) << sqlite3_errmsg(db_);
  }
  void refused(std::string_view why) {
    const bool is_in_transaction = sqlite3_get_autocommit(db_) == 0;
    const auto store = open_sqlite_on(db_, {});
    ASSERT_FALSE(store);
    EXPECT_NE(store.error().find(why), std::string::npos) << store.error();
    EXPECT_EQ(sqlite3_get_autocommit(db_) == 0, is_in_transaction) << "as it was";
    EXPECT_EQ(ask(db_, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'idem%'"), "0") << why;
  }
  std::unique_ptr<Store> taken() {
    auto store = open_sqlite_on(db_, {});
    EXPECT_TRUE(store) << store.error();
    if (!store) return nullptr;
    db_ = nullptr;
    return std::move(*store);
  }

  TempDir dir_;
  std::string path_ = (dir_.path() / "own.db").string();
  sqlite3* db_ = nullptr;
};

TEST_F(OwnConnection, V19_a_connection_without_the_setup_is_refused_and_stays_the_callers) {
  const std::string all = own_connection_setup;
  const auto instead = [&](std::string_view wanted, std::string_view set) {
    std::string setup = all;
    setup.replace(setup.find(wanted), wanted.size(), set);
    open(setup);
  };
  instead("locking_mode = EXCLUSIVE", "cache_size = 100");
  refused("locking_mode");
  instead("journal_mode = WAL", "journal_mode = DELETE");
  refused("write-ahead log");
  instead("synchronous = FULL", "synchronous = NORMAL");
  refused("synchronous");
  instead("wal_autocheckpoint = 0", "wal_autocheckpoint = 1000");
  refused("wal_autocheckpoint");
  instead("foreign_keys = ON", "foreign_keys = OFF");
  refused("foreign_keys");
  open(all + "; PRAGMA query_only = ON");
  refused("query_only");
  open(all + "; CREATE TEMP TABLE idem_slots (id)");
  refused("temporary");
  open(all + "; CREATE TABLE t (a); CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END");
  refused("temporary");
  open(all + "; ATTACH ':memory:' AS other");
  refused("attached");
  open(all + "; BEGIN");
  refused("transaction is open");
  run(db_, "ROLLBACK");
  open();
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, 1'000'000);
  refused("SQLITE_LIMIT_LENGTH");
  open();
  sqlite3_stmt* statement = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(db_, "VALUES (1), (2)", -1, &statement, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_step(statement), SQLITE_ROW);
  refused("in the middle of its rows");
  sqlite3_finalize(statement);
  open(all + "; PRAGMA user_version = 7");
  refused("user_version is 7");
  open(all + "; PRAGMA user_version = 0; PRAGMA application_id = 42");
  refused("another program's");
  run(db_, "PRAGMA application_id = 0; CREATE TABLE slots_by_due (mine)");
  refused("already a table named slots_by_due");
  run(db_, "DROP TABLE slots_by_due");
  EXPECT_NE(taken(), nullptr) << "nothing of all that was left";
}

TEST_F(OwnConnection, V19_a_connection_without_a_file_of_its_own_is_refused) {
  open_at(":memory:", "");
  refused("no database in a file");
  open_at("", "");
  refused("no database in a file");
  open_at("file:shared?mode=memory&cache=shared", "PRAGMA locking_mode = EXCLUSIVE");
  refused("no database in a file");
  open("PRAGMA encoding = 'UTF-16'; CREATE TABLE t (a)");
  refused("UTF-8");
  std::filesystem::remove(path_);
  open_at("file:" + path_ + "?nolock=1", "");
  refused("without locks");
  open();
  open("", SQLITE_OPEN_READONLY);
  refused("cannot be written");
}

TEST_F(OwnConnection, V19_a_file_that_others_have_open_is_refused_and_nobody_gets_in_afterwards) {
  open();
  close();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ask(other, "SELECT count(*) FROM sqlite_schema");  // In WAL it keeps a lock from now on.
  ASSERT_EQ(sqlite3_open(path_.c_str(), &db_), SQLITE_OK);
  run(db_, "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON");
  ask(db_, "SELECT count(*) FROM sqlite_schema");
  run(db_, "PRAGMA locking_mode = EXCLUSIVE");  // Too late for the first access, and still set.
  const auto store = open_sqlite_on(db_, {});
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().find("another process owns"), std::string::npos) << store.error();
  sqlite3_close(other);
  const auto now = taken();
  ASSERT_NE(now, nullptr);
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  EXPECT_EQ(run(other, "SELECT count(*) FROM sqlite_schema"), SQLITE_BUSY);
  sqlite3_close(other);
  EXPECT_FALSE(open_store("sqlite:" + path_, {}));
}

void twice(sqlite3_context* context, int, sqlite3_value** values) {
  sqlite3_result_int64(context, 2 * sqlite3_value_int64(values[0]));
}

TEST_F(OwnConnection, S17_functions_tables_and_statements_of_the_service_stay_with_its_connection) {
  const auto open_with_function = [&] {
    open();
    EXPECT_EQ(sqlite3_create_function(db_, "twice", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr,
                                      twice, nullptr, nullptr),
              SQLITE_OK);
  };
  open_with_function();
  ASSERT_EQ(run(db_,
                "CREATE TABLE payments (id TEXT, amount INTEGER CHECK (twice(amount) > 1));"
                "CREATE INDEX payments_by_twice ON payments (twice(amount))"),
            SQLITE_OK)
      << sqlite3_errmsg(db_);
  // Prepared before there was anybody to ask whether it may.
  sqlite3_stmt* commit = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(db_, "COMMIT", -1, &commit, nullptr), SQLITE_OK);
  auto engine = std::make_unique<Engine>(taken());
  Guard guard(*engine, {.operation = "create-payment"});
  const auto pay = [&](const std::string& amount) -> TransactionWork {
    return [&, amount](Transaction& tx) -> Outcome {
      EXPECT_EQ(sqlite3_step(commit), SQLITE_AUTH);
      sqlite3_reset(commit);
      tx.run("INSERT INTO payments VALUES ('p', " + amount + ")");
      const auto rows = tx.run("SELECT twice(amount) FROM payments");
      if (tx.failed()) return NotExecuted{{500, {}, {}}};
      return Response{201, {}, std::to_string(std::get<std::int64_t>(rows.at(0).at(0)))};
    };
  };
  EXPECT_EQ(guard.serve_in_transaction(payment("k"), pay("0")).status, 500);
  const auto first = guard.serve_in_transaction(payment("k"), pay("5"));
  EXPECT_EQ(first.body, "10");
  EXPECT_TRUE(replays(first, guard.serve_in_transaction(payment("k"), pay("6"))));
  sqlite3_finalize(commit);
  engine.reset();
  // The tables of the schema have to be there.
  const auto without = open_store("sqlite:" + path_, {});
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().find("twice"), std::string::npos) << without.error();
  open_with_function();
  Engine later(taken());
  Guard again(later, {.operation = "create-payment"});
  EXPECT_TRUE(replays(first, again.serve_in_transaction(payment("k"), pay("6"))));
}

}  // namespace
}  // namespace idem::test
