#include "store_conformance/faults.hpp"
#include "store_conformance/mysql/asking.hpp"
#include "store_conformance/transacting.hpp"

/// Transactions of services when MariaDB, or the way there, misbehaves.
namespace idem::test {
namespace {

using How = TransactionEnd::How;

class MysqlTransactionFaults : public testing::Test {
 protected:
  MysqlTransactionFaults()
      : proxy_(address_in(database_.url())),
        store_(open_by_url(by_proxy(proxy_, database_.url()))) {
    session_.run("CREATE TABLE payments (id VARCHAR(100) PRIMARY KEY, amount INT) ENGINE=InnoDB");
  }

  TransactionEnd run_under(const Execute& attempt, const std::string& payment) {
    return store_->transactions()->run(under(attempt, pays(payment)));
  }
  State state(int key_number) { return try_ask(*store_, Find{key(key_number)}).value()->state; }
  std::string payments() { return session_.run("SELECT COUNT(*) FROM payments"); }

  /// The last message of a transaction: the step of the attempt, and COMMIT.
  static constexpr const char* settling_ = "RELEASE SAVEPOINT idem_begun";

  TestMysqlDatabase database_;
  CuttingProxy proxy_;
  std::unique_ptr<Store> store_;
  MysqlSession session_{database_.url()};
};

// The first reply is lost, and then the connection: the server has executed all of the message, or
// a part of it.
TEST_F(MysqlTransactionFaults, S17_T57_a_commit_whose_reply_was_lost_is_in_doubt_and_is_found) {
  int paid = 0;
  for (int round = 1; round <= 10; ++round) {
    const Execute attempt = run(*store_, round);
    proxy_.lose_answer_to(settling_);
    const auto end = run_under(attempt, "p" + std::to_string(round));
    EXPECT_EQ(end.how, How::in_doubt) << end.why;
    EXPECT_EQ(proxy_.lost(), round);
    const auto reply = try_ask(*store_, a_release(attempt));
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
    const bool is_committed = state(round) == State::completed;
    EXPECT_EQ(reply->verdict, is_committed ? Verdict::settled : Verdict::done);
    if (is_committed) ++paid;
    EXPECT_EQ(payments(), std::to_string(paid));
  }
  fmt::print("committed={} rolled_back={}\n", paid, 10 - paid);
}

TEST_F(MysqlTransactionFaults, S17_T57_a_commit_that_did_not_arrive_can_be_released) {
  for (int round = 1; round <= 10; ++round) {
    const Execute attempt = run(*store_, round);
    proxy_.lose_message(settling_);
    const auto end = run_under(attempt, "p");
    EXPECT_EQ(end.how, How::in_doubt) << end.why;
    EXPECT_FALSE(end.rows_may_be_committed);
    EXPECT_EQ(proxy_.lost(), round);
    const auto reply = try_ask(*store_, a_release(attempt));
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
    EXPECT_EQ(reply->verdict, Verdict::done);
    EXPECT_EQ(payments(), "0");
    InTransaction again{a_reserve_in(*store_, round, 2), {}, {}, pays("p")};
    ASSERT_EQ(store_->transactions()->run(std::move(again)).how, How::committed);
    EXPECT_EQ(payments(), "1");
    session_.run("DELETE FROM payments");
  }
}

TEST_F(MysqlTransactionFaults, S17_reserve_rows_and_completion_lost_together_are_found_by_token) {
  for (int number = 1; number <= 4; ++number) {
    const Reserve reserve = a_reserve_in(*store_, number);
    if (number % 2 == 0) proxy_.lose_message(settling_);
    if (number % 2 == 1) proxy_.lose_answer_to(settling_);
    InTransaction one{reserve, {}, {}, pays(std::to_string(number))};
    EXPECT_EQ(store_->transactions()->run(std::move(one)).how, How::in_doubt);
    EXPECT_EQ(proxy_.lost(), number);
    const auto again = try_ask(*store_, reserve);
    ASSERT_TRUE(again.has_value()) << again.error().detail;
    const std::string rows =
        session_.run("SELECT COUNT(*) FROM payments WHERE id = '" + std::to_string(number) + "'");
    EXPECT_EQ(is<Replay>(*again), rows == "1") << describe(*again);
    EXPECT_EQ(is<Execute>(*again), rows == "0") << describe(*again);
  }
}

TEST_F(MysqlTransactionFaults, S17_a_connection_lost_before_the_commit_leaves_nothing) {
  const Execute attempt = run(*store_, 1);
  proxy_.lose_answer_to("INSERT INTO payments");
  const auto end = run_under(attempt, "p");
  EXPECT_EQ(end.how, How::unavailable) << end.why;
  EXPECT_EQ(proxy_.lost(), 1);
  EXPECT_EQ(payments(), "0");
  // Before the work ran it is simply begun again.
  proxy_.lose_answer_to("SAVEPOINT idem_begun");
  int runs = 0;
  const auto begun_again = store_->transactions()->run(
      under(attempt, [&](Transaction& transaction, const RecordId& id, const Attempt& of) {
        ++runs;
        return pay(transaction, "p", id, of);
      }));
  EXPECT_EQ(begun_again.how, How::committed) << begun_again.why;
  EXPECT_EQ(proxy_.lost(), 2);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(payments(), "1");
}

TEST_F(MysqlTransactionFaults, S17_a_session_that_is_ended_under_the_work_leaves_nothing) {
  const Execute attempt = run(*store_, 1);
  const auto end = store_->transactions()->run(
      under(attempt, [&](Transaction& transaction, const RecordId& id, const Attempt& of) {
        auto step = pay(transaction, "p", id, of);
        const auto session = transaction.run("SELECT CONNECTION_ID()");
        session_.run("KILL " + std::to_string(std::get<std::int64_t>(session.front().front())));
        EXPECT_TRUE(transaction.run("SELECT 1").empty());
        EXPECT_TRUE(transaction.failed());
        return step;
      }));
  EXPECT_EQ(end.how, How::unavailable) << end.why;
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(state(1), State::in_progress);
  EXPECT_EQ(run_under(attempt, "p").how, How::committed);
}

}  // namespace
}  // namespace idem::test
