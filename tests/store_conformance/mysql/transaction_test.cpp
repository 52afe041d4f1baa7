#include "store_conformance/mysql/asking.hpp"
#include "store_conformance/transacting.hpp"

#include <idem/mysql.hpp>

#include <mysql.h>

/// Work that does to its transaction what MariaDB lets it do, and other stores do not.
namespace idem::test {
namespace {

using How = TransactionEnd::How;

class MysqlTransactions : public testing::Test {
 protected:
  MysqlTransactions() : store_(open_by_url(database_.url())), session_(database_.url()) {
    session_.run("CREATE TABLE payments (id VARCHAR(100) PRIMARY KEY, amount INT) ENGINE=InnoDB");
  }

  Execute attempt(int key_number) {
    Reserve verb = a_reserve(key_number);
    verb.generation = store_->identity().generation;
    return std::get<Execute>(*ask_and_wait(*store_, verb));
  }
  template <class Ending>
  TransactionEnd run(const Execute& of, Ending ending) {
    return store_->transactions()->run(
        under(of, [&](Transaction& transaction, const RecordId& id, const Attempt& by) {
          auto step = pay(transaction, "p", id, by);
          ending(transaction);
          return step;
        }));
  }
  State state(int key_number) {
    return ask_and_wait(*store_, Find{key(key_number)}).value()->state;
  }
  std::string payments() {
    return MysqlSession(database_.url()).run("SELECT count(*) FROM payments");
  }

  TestMysqlDatabase database_;
  std::unique_ptr<Store> store_;
  MysqlSession session_;
};

TEST_F(MysqlTransactions, S17_what_the_server_commits_by_itself_is_refused) {
  const Execute of = attempt(1);
  for (const char* const sql : {"CREATE TABLE t (id INT)", "TRUNCATE payments", "COMMIT",
                                "XA END 'a'", "SELECT 1; COMMIT"}) {
    const auto end = run(of, [&](Transaction& transaction) { transaction.run(sql); });
    EXPECT_EQ(end.how, How::rolled_back) << sql << ": " << end.why;
  }
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(run(of, [](Transaction&) {}).how, How::committed);
}

TEST_F(MysqlTransactions, S17_work_that_commits_behind_the_stores_back_never_runs_again) {
  session_.run(
      "CREATE PROCEDURE commits() COMMIT; CREATE PROCEDURE goes_on() BEGIN COMMIT; START"
      " TRANSACTION; END");
  int number = 0;
  for (const char* const sql :
       {"CALL commits()", "CALL goes_on()", "EXECUTE IMMEDIATE 'COMMIT'", "SET autocommit = 1"}) {
    session_.run("DELETE FROM payments");
    const Execute of = attempt(++number);
    int runs = 0;
    const auto end = run(of, [&](Transaction& transaction) {
      ++runs;
      transaction.run(sql);
    });
    EXPECT_EQ(end.how, How::in_doubt) << sql << ": " << end.why;
    EXPECT_TRUE(end.rows_may_be_committed) << sql;
    EXPECT_EQ(runs, 1) << sql;
    EXPECT_EQ(state(number), State::unknown) << sql;
    EXPECT_EQ(ask_and_wait(*store_, a_release(of)).value().verdict, Verdict::stale) << sql;
  }
  EXPECT_EQ(session_.run("SELECT count(*) FROM idem_lent"), "0");
}

TEST_F(MysqlTransactions, S17_the_connection_is_lent_and_its_errors_doom) {
  const Execute of = attempt(1);
  const auto failing = [](const char* sql) {
    return [sql](Transaction& transaction) {
      MYSQL* const connection = mysql_connection(transaction);
      ASSERT_NE(connection, nullptr);
      EXPECT_EQ(transaction.native(), connection);
      (void)mysql_query(connection, sql);
    };
  };
  EXPECT_EQ(run(of, failing("INSERT INTO payments VALUES ('p', 1)")).how, How::rolled_back);
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(run(of, failing("INSERT INTO payments VALUES ('q', 1)")).how, How::committed);
  EXPECT_EQ(payments(), "2");
  const Execute other = attempt(2);
  session_.run("DELETE FROM payments");
  const auto end = run(other, failing("COMMIT"));
  EXPECT_EQ(end.how, How::in_doubt) << end.why;
  EXPECT_EQ(state(2), State::unknown);
}

TEST_F(MysqlTransactions, S17_a_service_completes_on_a_connection_of_its_own) {
  const Execute of = attempt(1);
  MYSQL* const own = mysql_init(nullptr);
  const std::string address = address_in(database_.url());
  const auto port = static_cast<unsigned>(std::stoul(address.substr(address.find(':') + 1)));
  ASSERT_NE(
      mysql_real_connect(own, "127.0.0.1", "root", "", database_.name().c_str(), port, nullptr, 0),
      nullptr);
  const auto outside = complete_on(own, of.id, of.attempt, answer());
  EXPECT_EQ(outside.error().code, 31005U);
  EXPECT_EQ(mysql_query(own, "START TRANSACTION"), 0);
  EXPECT_EQ(mysql_query(own, "INSERT INTO payments VALUES ('p', 1)"), 0);
  const auto done = complete_on(own, of.id, of.attempt, answer(201, "body"), "ref");
  EXPECT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(mysql_query(own, "COMMIT"), 0);
  EXPECT_EQ(payments(), "1");
  EXPECT_EQ(ask_and_wait(*store_, Find{key(1)}).value()->response, answer(201, "body"));
  EXPECT_EQ(mysql_query(own, "START TRANSACTION"), 0);
  EXPECT_EQ(mysql_query(own, "INSERT INTO payments VALUES ('late', 1)"), 0);
  const auto late = complete_on(own, of.id, of.attempt, answer());
  ASSERT_FALSE(late.has_value());
  EXPECT_TRUE(late.error().is_late()) << late.error().message;
  EXPECT_EQ(mysql_query(own, "COMMIT"), 0);
  EXPECT_EQ(payments(), "1");
  mysql_close(own);
}

}  // namespace
}  // namespace idem::test
