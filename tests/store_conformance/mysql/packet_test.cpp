#include "store_conformance/mysql/asking.hpp"
#include "store_conformance/transacting.hpp"

/// Values that are longer than the server's max_allowed_packet: no outage, and no lost work.
namespace idem::test {
namespace {

// 16 MiB is what MariaDB allows unless its settings say otherwise.
class MysqlPacket : public testing::Test {
 protected:
  MysqlServer server_{"max_allowed_packet=16M"};
  std::unique_ptr<Store> store_ = open_by_url(server_.url());
  const std::string too_large_ = std::string(20UL << 20U, 'x');
};

TEST_F(MysqlPacket, S05_what_the_server_never_takes_is_no_outage) {
  Accept accept = an_accept(1, too_large_);
  accept.as.generation = store_->identity().generation;
  const auto accepted = ask_and_wait(*store_, accept);
  ASSERT_FALSE(accepted.has_value());
  EXPECT_EQ(accepted.error().code, StoreError::Code::unstorable) << accepted.error().detail;
  EXPECT_FALSE(try_ask(*store_, Find{key(1)})->has_value()) << "nothing is there";
  accept.request = "POST / again";
  EXPECT_TRUE(is<Pending>(*ask_and_wait(*store_, accept)));
}

TEST_F(MysqlPacket, T24_an_answer_that_the_server_never_takes_leaves_the_attempt_to_its_owner) {
  const Execute attempt = run(*store_, 1);
  Complete complete = a_complete(attempt, answer(201, too_large_));
  const auto settled = try_ask(*store_, complete);
  ASSERT_FALSE(settled.has_value());
  EXPECT_EQ(settled.error().code, StoreError::Code::unstorable) << settled.error().detail;
  complete.response.body.clear();
  complete.response.body_stored = false;
  EXPECT_EQ(try_ask(*store_, complete)->verdict, Verdict::done);
  const auto retry = try_ask(*store_, a_reserve(1, 2));
  ASSERT_TRUE(retry && is<Replay>(*retry));
  EXPECT_FALSE(std::get<Replay>(*retry).response.body_stored);
}

TEST_F(MysqlPacket, S04_calls_beside_one_that_does_not_fit_are_made) {
  std::vector<StoreCall> calls;
  for (int number = 1; number <= 20; ++number) calls.emplace_back(a_reserve_in(*store_, number));
  Accept accept = an_accept(21, too_large_);
  accept.as.generation = store_->identity().generation;
  calls.emplace_back(std::move(accept));
  const auto results = ask_at_once(*store_, std::move(calls));
  for (std::size_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(results[i].has_value()) << results[i].error().detail;
    EXPECT_TRUE(is<Execute>(std::get<ReserveOutcome>(*results[i])));
  }
  ASSERT_FALSE(results[20].has_value());
  EXPECT_EQ(results[20].error().code, StoreError::Code::unstorable) << results[20].error().detail;
}

TEST(MysqlTransactionPacket, T24_rows_beside_an_answer_that_the_server_never_takes_are_committed) {
  const MysqlServer server("max_allowed_packet=16M");
  MysqlSession session(server.url());
  session.run("CREATE TABLE payments (id VARCHAR(100) PRIMARY KEY, amount INT) ENGINE=InnoDB");
  const auto store = open_by_url(server.url());
  const auto pays = [&](int key_number, std::size_t bytes) {
    return store->transactions()->run(
        under(run(*store, key_number),
              [&](Transaction& transaction, const RecordId& id, const Attempt& by) {
                auto step = pay(transaction, std::to_string(key_number), id, by);
                std::get<Complete>(*step).response.body.assign(bytes, 'b');
                return step;
              }));
  };
  EXPECT_EQ(pays(1, 7UL << 20U).how, TransactionEnd::How::committed);
  EXPECT_EQ(try_ask(*store, Find{key(1)}).value()->response->body.size(), 7UL << 20U);
  const auto end = pays(2, 10UL << 20U);
  EXPECT_EQ(end.how, TransactionEnd::How::committed) << end.why;
  EXPECT_FALSE(try_ask(*store, Find{key(2)}).value()->response->body_stored);
  EXPECT_EQ(session.run("SELECT count(*) FROM payments"), "2");
}

}  // namespace
}  // namespace idem::test
