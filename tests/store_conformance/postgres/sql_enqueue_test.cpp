#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/postgres/postgres_store.hpp"
#include "store_conformance/harness.hpp"
#include "support/postgres.hpp"

/// idem.enqueue for services in other languages: a message is there if and only if its transaction
/// is, and only while the attempt is the current one.
namespace idem::test {
namespace {

class SqlEnqueue : public testing::Test {
 protected:
  void SetUp() override {
    store_ = *open_postgres(database_.uri(), test_settings(), {});
    sql_ = std::make_unique<Psql>(database_.uri());
  }
  /// The arguments that name an attempt of a new record.
  std::string attempt_of(const std::string& key) {
    return sql_->run(fmt::format(
        "SELECT quote_literal(operation) || ', ' || fence || ', ' || quote_literal(attempt)"
        " FROM idem.reserve('acme', 'pay', '{}', 'bytes')",
        key));
  }
  static std::string enqueue(const std::string& attempt,
                             const std::string& rest = "'receipts', 'paid', '{}'") {
    return "SELECT idem.enqueue(" + attempt + ", " + rest + ")";
  }
  std::string messages() { return sql_->run("SELECT count(*) FROM idem.outbox"); }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Psql> sql_;
};

TEST_F(SqlEnqueue, V22_S17_a_message_is_there_if_and_only_if_its_transaction_is) {
  const auto attempt = attempt_of("k");
  sql_->run("BEGIN; " + enqueue(attempt) + "; ROLLBACK");
  EXPECT_EQ(messages(), "0");
  sql_->run("BEGIN; " + enqueue(attempt) + "; SELECT idem.complete(" + attempt + ", 201); COMMIT");
  EXPECT_EQ(messages(), "1");
  EXPECT_EQ(sql_->run("SELECT destination || type || payload || state FROM idem.outbox"),
            "receiptspaid{}waiting");
}

TEST_F(SqlEnqueue, S17_T08_a_stale_or_ended_attempt_raises_and_the_rows_roll_back_with_it) {
  sql_->run("CREATE TABLE rows (n integer)");
  const auto attempt = attempt_of("k");
  auto stale = attempt;
  stale.replace(stale.find(", ") + 2, 1, "9");
  EXPECT_EQ(sql_->try_run("BEGIN; INSERT INTO rows VALUES (1); " + enqueue(stale)), "IDM01");
  sql_->run("ROLLBACK");
  sql_->run("SELECT idem.complete(" + attempt + ", 201)");
  EXPECT_EQ(sql_->try_run("BEGIN; INSERT INTO rows VALUES (1); " + enqueue(attempt)), "IDM02");
  sql_->run("ROLLBACK");
  EXPECT_EQ(sql_->run("SELECT count(*) FROM rows"), "0");
  EXPECT_EQ(messages(), "0");
  EXPECT_EQ(sql_->run("SELECT idem.try_enqueue(" + attempt + ", 'd', 't', 'p') IS NULL"), "t");
  EXPECT_EQ(sql_->run("SELECT idem.try_enqueue(" + stale + ", 'd', 't', 'p') IS NULL"), "t");
  EXPECT_EQ(messages(), "0");
}

TEST_F(SqlEnqueue, S17_a_message_that_cannot_be_sent_is_refused) {
  const auto attempt = attempt_of("k");
  for (const std::string rest : {"'', 't', 'p'", "'d', '', 'p'", "'d', 't', NULL",
                                 "repeat('d', 256), 't', 'p'", "'d', 't', repeat('p', 1048577)"}) {
    EXPECT_EQ(sql_->try_run(enqueue(attempt, rest)), "IDM05") << rest;
  }
  EXPECT_EQ(sql_->try_run(enqueue("NULL, 1, NULL")), "IDM05");
  EXPECT_EQ(messages(), "0");
}

TEST_F(SqlEnqueue, V03_S09_a_restricted_role_enqueues_in_its_scope_alone) {
  const auto mine = attempt_of("k");
  const auto role = "role_" + sql_->run("SELECT replace(gen_random_uuid()::text, '-', '')");
  sql_->run("CREATE ROLE " + role + "; SELECT idem.restrict_to_scope('" + role + "', 'globex')");
  sql_->run("SET ROLE " + role);
  EXPECT_EQ(sql_->try_run(enqueue(mine)), "IDM01");
  EXPECT_EQ(sql_->try_run("SELECT count(*) FROM idem.outbox"), "42501");
  EXPECT_EQ(sql_->try_run("SELECT count(*) FROM idem.flows"), "42501");
  const auto own = sql_->run(
      "SELECT quote_literal(operation) || ', ' || fence || ', ' || quote_literal(attempt)"
      " FROM idem.reserve('globex', 'pay', 'k', 'bytes')");
  sql_->run(enqueue(own));
  sql_->run("RESET ROLE");
  EXPECT_EQ(messages(), "1");
  sql_->run("SELECT idem.lift_restriction('" + role + "'); DROP ROLE " + role);
}

}  // namespace
}  // namespace idem::test
