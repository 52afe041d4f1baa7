#include "store_conformance/postgres/asking.hpp"
#include "store_conformance/transacting.hpp"

/// Damage that a service's transaction on PostgreSQL meets (protocol.md §22): the caller learns of
/// which record, as on the other stores.
namespace idem::test {
namespace {

using How = TransactionEnd::How;

class PostgresTransactionDamage : public testing::Test {
 protected:
  PostgresTransactionDamage() : store_(open_by_uri(database_.uri())), session_(database_.uri()) {
    session_.run(payments_table);
  }

  void expect_damaged(const TransactionEnd& end) {
    EXPECT_NE(end.how, How::committed) << end.why;
    EXPECT_FALSE(end.rows_may_be_committed);
    EXPECT_EQ(end.damaged, key(1)) << end.why;
    EXPECT_EQ(session_.run("SELECT count(*) FROM payments"), "0");
  }
  void damage(const std::string& how) { session_.run("UPDATE idem.slots SET " + how); }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  Psql session_;
};

TEST_F(PostgresTransactionDamage, S22_S17_a_reserve_that_meets_a_damaged_record_names_it) {
  ASSERT_TRUE(ask_and_wait(*store_, a_complete(run(*store_, 1))));
  damage("state = 'pending'");
  expect_damaged(store_->transactions()->run({a_reserve_in(*store_, 1, 2), {}, {}, pays("p")}));
}

TEST_F(PostgresTransactionDamage, S22_S17_an_attempt_whose_record_is_damaged_names_it) {
  const Execute attempt = run(*store_, 1);
  damage("state = 'failed_retryable'");
  expect_damaged(store_->transactions()->run(under(attempt, pays("p"))));
}

}  // namespace
}  // namespace idem::test
