#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/transacting.hpp"

#include <fmt/format.h>

/// A service's statements on the embedded store's own connection.
namespace idem::test {
namespace {

class SqliteTransactions : public testing::Test {
 protected:
  SqliteTransactions() {
    open();
    EXPECT_TRUE(sql(payments_table));
  }
  void open() {
    store_.reset();
    auto store = open_sqlite(folder_.file("service.db"), test_settings(), {});
    if (!store) {
      ADD_FAILURE() << store.error().detail;
      std::abort();
    }
    store_ = std::move(*store);
  }
  Reserve reserve(int number, int token_number = 1) {
    Reserve verb = a_reserve(number, token_number);
    verb.generation = store_->identity().generation;
    return verb;
  }
  std::expected<SqlRows, std::string> sql(const std::string& statement) {
    return store_->transactions()->run(statement);
  }

  TempFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(SqliteTransactions, T30_no_statement_of_a_service_gets_at_the_records) {
  const auto first = ask_and_wait(*store_, reserve(1));
  ASSERT_TRUE(first && is<Execute>(*first));
  ASSERT_TRUE(ask_and_wait(*store_, a_complete(std::get<Execute>(*first))));
  ASSERT_TRUE(sql("CREATE VIEW shown AS SELECT * FROM idem_slots"));
  for (const std::string statement : {
           "COMMIT",
           "ROLLBACK",
           "BEGIN",
           "SAVEPOINT mine",
           "RELEASE idem_work",
           "ROLLBACK TO idem_work",
           "ATTACH ':memory:' AS other",
           "PRAGMA synchronous = OFF",
           "PRAGMA user_version = 1",
           "PRAGMA writable_schema = ON",
           "DELETE FROM idem_slots",
           "DELETE FROM IDEM_SLOTS",
           "DELETE FROM main.\"idem_slots\"",
           "UPDATE idem_slots SET record = x''",
           "INSERT INTO idem_running SELECT 1, id, slot, record FROM idem_slots",
           "REPLACE INTO idem_meta (name, value) VALUES ('generation', 9)",
           "DROP TABLE idem_meta",
           "DROP INDEX slots_by_due",
           "ALTER TABLE idem_slots RENAME TO gone",
           "ALTER TABLE idem_slots ADD COLUMN more",
           "CREATE INDEX mine ON idem_slots (record)",
           "CREATE TRIGGER mine AFTER INSERT ON idem_slots BEGIN DELETE FROM payments; END",
           "CREATE TEMP TRIGGER mine AFTER INSERT ON main.idem_slots BEGIN SELECT 1; END",
           "CREATE TABLE idem_mine (id)",
           "CREATE TABLE Idem_mine (id)",
           "CREATE TEMP TABLE idem_slots AS SELECT * FROM main.idem_slots",
           "CREATE TABLE temp.IDEM_slots AS SELECT * FROM main.idem_slots",
           "CREATE TEMP TABLE mine (id)",
           "CREATE TEMP VIEW idem_meta AS SELECT 1 AS name, 2 AS value",
           "INSERT INTO payments VALUES ('p', 1); DELETE FROM payments",
           "VACUUM",
       }) {
    EXPECT_FALSE(sql(statement).has_value()) << statement;
  }
  // A trigger of a business table is a way there, too.
  EXPECT_TRUE(sql("CREATE TRIGGER way AFTER INSERT ON payments BEGIN DELETE FROM idem_slots; END"));
  EXPECT_FALSE(sql("INSERT INTO payments VALUES ('p', 1)").has_value());
  EXPECT_TRUE(sql("DROP TRIGGER way"));
  EXPECT_TRUE(sql("INSERT INTO payments VALUES ('p', 1)"));
  for (int starts = 0; starts < 2; ++starts) {
    const auto retry = ask_and_wait(*store_, reserve(1, 2));
    EXPECT_TRUE(retry && is<Replay>(*retry));
    EXPECT_EQ(rows_in(*store_->transactions()), 1);
    open();
  }
}

TEST_F(SqliteTransactions, S17_a_reference_that_stays_broken_is_this_works_failure_alone) {
  ASSERT_TRUE(
      sql("CREATE TABLE refunds (payment TEXT REFERENCES payments (id) DEFERRABLE INITIALLY"
          " DEFERRED)"));
  EXPECT_FALSE(sql("INSERT INTO refunds VALUES ('no such payment')").has_value());
  const auto outcome = ask_and_wait(*store_, reserve(1));
  const Execute run = std::get<Execute>(outcome.value());
  const auto broken = store_->transactions()->run(
      under(run,
            [](Transaction& transaction, const RecordId& id,
               const Attempt& attempt) -> std::optional<StoreCall> {
              transaction.run("INSERT INTO refunds VALUES ('no such payment')");
              return pay(transaction, "p", id, attempt);
            }));
  EXPECT_EQ(broken.how, TransactionEnd::How::rolled_back);
  EXPECT_NE(broken.why.find("FOREIGN KEY"), std::string::npos) << broken.why;
  const auto mended =
      store_->transactions()->run(under(run,
                                        [](Transaction& transaction, const RecordId& id,
                                           const Attempt& attempt) -> std::optional<StoreCall> {
                                          transaction.run("INSERT INTO refunds VALUES ('p')");
                                          return pay(transaction, "p", id, attempt);
                                        }));
  EXPECT_EQ(mended.how, TransactionEnd::How::committed) << mended.why;
}

// The store's rows come and go; one that is referred to could neither be changed nor dropped.
TEST_F(SqliteTransactions, T30_no_table_of_a_service_refers_to_the_records) {
  for (const std::string statement :
       {"CREATE TABLE of_record (id BLOB REFERENCES idem_slots (id))",
        "CREATE TABLE of_slot (slot INTEGER REFERENCES IDEM_slots (slot) ON DELETE CASCADE)",
        "ALTER TABLE payments ADD COLUMN slot INTEGER REFERENCES idem_slots (slot)"}) {
    for (int tries = 0; tries < 2; ++tries) {  // The second time it is prepared already.
      const auto made = sql(statement);
      ASSERT_FALSE(made.has_value()) << statement;
      EXPECT_NE(made.error().find("foreign key"), std::string::npos) << made.error();
    }
  }
  EXPECT_TRUE(sql("CREATE TABLE refunds (payment TEXT REFERENCES payments (id))"));
  EXPECT_TRUE(sql("ALTER TABLE payments ADD COLUMN more TEXT"));
}

TEST_F(SqliteTransactions, S17_values_are_named_by_their_number_alone) {
  const auto ask = [&](std::string_view statement) {
    return store_->transactions()->run(statement, {std::int64_t{7}, std::string("b")});
  };
  EXPECT_EQ(ask("SELECT $2, $1, $2").value(),
            (SqlRows{{std::string("b"), std::int64_t{7}, std::string("b")}}));
  for (const auto* statement : {"SELECT $3", "SELECT $0", "SELECT $1x", "SELECT ?1", "SELECT :a",
                                "SELECT $x", "SELECT $4294967297", "SELECT ?"}) {
    EXPECT_FALSE(ask(statement).has_value()) << statement;
  }
}

TEST_F(SqliteTransactions, work_that_asks_the_store_is_refused_and_does_not_wait_for_itself) {
  const auto outcome = ask_and_wait(*store_, reserve(1));
  const auto end = store_->transactions()->run(under(
      std::get<Execute>(outcome.value()),
      [&](Transaction& transaction, const RecordId& id, const Attempt& attempt) {
        EXPECT_FALSE(sql("SELECT 1").has_value());
        InTransaction nested;
        nested.work = [](Transaction&, const RecordId&, const Attempt&) { return std::nullopt; };
        EXPECT_EQ(store_->transactions()->run(std::move(nested)).how,
                  TransactionEnd::How::unavailable);
        return pay(transaction, "p", id, attempt);
      }));
  EXPECT_EQ(end.how, TransactionEnd::How::committed) << end.why;
}

}  // namespace
}  // namespace idem::test
