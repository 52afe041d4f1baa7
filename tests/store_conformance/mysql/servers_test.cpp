#include "store_conformance/mysql/asking.hpp"
#include "store_conformance/transacting.hpp"
#include "support/back_off.hpp"

#include <filesystem>
#include <future>

/// Two servers of one URL that both take writes, as after a failover: the store uses one of them,
/// and so do the transactions of services.
namespace idem::test {
namespace {

using How = TransactionEnd::How;

class MysqlServers : public testing::Test {
 protected:
  /// The second has a copy of the first one's files. Both are down.
  MysqlServers() {
    (void)open_by_url(first_.url());
    MysqlSession(first_.url()).run(std::string(payments_table) + " ENGINE=InnoDB");
    first_.crash();
    second_.crash();
    std::filesystem::remove_all(second_.folder() + "/data");
    std::filesystem::copy(first_.folder() + "/data", second_.folder() + "/data",
                          std::filesystem::copy_options::recursive);
  }

  std::string url() const {
    return fmt::format("mysql://root@{},{}/idem", first_.address(), second_.address());
  }
  static std::string at(const MysqlServer& server, const std::string& sql) {
    return MysqlSession(server.url()).run(sql);
  }
  static std::string payments(const MysqlServer& server) {
    return at(server, "SELECT COUNT(*) FROM payments");
  }
  static TransactionEnd pay_for(Store& store, int number, const std::string& payment) {
    return store.transactions()->run({a_reserve_in(store, number), {}, {}, pays(payment)});
  }
  /// The first becomes a replica for as long as it takes the store to notice. The second has what
  /// the store has confirmed.
  void fail_over(Store& store, int number) {
    at(second_, "UPDATE idem_fence SET highest = " + at(first_, highest_fence_));
    at(first_, "SET GLOBAL read_only = 1");
    while (!try_ask(store, a_reserve(number))) back_off();
    EXPECT_EQ(at(second_, "SELECT COUNT(*) FROM idem_slots WHERE id = " + literal(key(number))),
              "1");
    at(first_, "SET GLOBAL read_only = 0");
  }

  static constexpr const char* highest_fence_ =
      "SELECT GREATEST(COALESCE((SELECT MAX(fence) FROM idem_slots), 0), highest) FROM idem_fence";

  static constexpr const char* tables_ =
      "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'idem'";

  MysqlServer first_;
  MysqlServer second_;
};

TEST_F(MysqlServers, S02_S17_a_service_pays_on_the_server_that_the_store_uses) {
  second_.start();
  const auto store = open_by_url(url());
  run(*store, 1);
  first_.start();
  for (int number = 2; number <= 5; ++number) {
    const auto end = pay_for(*store, number, std::to_string(number));
    EXPECT_EQ(end.how, How::committed) << end.why;
  }
  EXPECT_EQ(payments(first_), "0");
  EXPECT_EQ(payments(second_), "4");
}

TEST_F(MysqlServers, S02_S17_a_kept_session_of_the_server_before_pays_no_more) {
  first_.start();
  second_.start();
  const auto store = open_by_url(url());
  ASSERT_EQ(pay_for(*store, 1, "before").how, How::committed);
  EXPECT_EQ(payments(first_), "1");
  fail_over(*store, 2);
  const auto end = pay_for(*store, 3, "after");
  EXPECT_EQ(end.how, How::committed) << end.why;
  EXPECT_EQ(payments(first_), "1");
  EXPECT_EQ(payments(second_), "1");
}

TEST_F(MysqlServers, S02_S17_a_transaction_that_outlives_a_failover_pays_on_the_next_server) {
  first_.start();
  second_.start();
  const auto store = open_by_url(url());
  int runs = 0;
  const auto end = store->transactions()->run(
      {a_reserve_in(*store, 1), {}, {}, [&](Transaction& transaction, auto& id, auto& of) {
         auto step = pay(transaction, "p", id, of);
         // On another thread, because this one must not wait for the store.
         if (++runs == 1) std::async(std::launch::async, [&] { fail_over(*store, 2); }).get();
         return step;
       }});
  EXPECT_EQ(end.how, How::committed) << end.why;
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(payments(first_), "0");
  EXPECT_EQ(payments(second_), "1");
}

TEST_F(MysqlServers, S02_a_first_server_of_other_settings_is_not_passed_over) {
  first_.start();
  second_.start();
  at(second_, "DROP DATABASE idem; CREATE DATABASE idem");
  run(*open_by_url(first_.url()), 1);
  IdentitySettings others = test_settings();
  others.key_scope = "tenant";
  const auto store = open_mysql(url(), others, {});
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, StoreError::Code::refused) << store.error().detail;
  EXPECT_EQ(at(second_, tables_), "0") << "no store began there";
}

TEST_F(MysqlServers, S02_S22_a_first_server_of_a_damaged_identity_is_not_passed_over) {
  first_.start();
  second_.start();
  at(second_, "DROP DATABASE idem; CREATE DATABASE idem");
  at(first_, "UPDATE idem_identity SET value = 'nonsense'");
  EXPECT_NE(refusal(url()), "");
  EXPECT_EQ(at(second_, tables_), "0") << "no store began there";
}

TEST(MysqlServer, S02_S17_a_service_leaves_a_server_that_became_a_replica_though_it_may_write) {
  const MysqlServer server;
  MysqlSession session(server.url());
  const auto store = open_by_url(server.url());
  session.run(std::string(payments_table) + " ENGINE=InnoDB");
  const auto pay_for = [&](int number) {
    return store->transactions()->run(
        {a_reserve_in(*store, number), {}, {}, pays(std::to_string(number))});
  };
  ASSERT_EQ(pay_for(1).how, How::committed);
  // root has the right to write nevertheless.
  session.run("SET GLOBAL read_only = 1");
  const auto refused = pay_for(2);
  ASSERT_EQ(refused.how, How::unavailable) << refused.why;
  EXPECT_EQ(session.run("SELECT COUNT(*) FROM payments"), "1");
  EXPECT_EQ(session.run("SELECT COUNT(*) FROM idem_slots"), "1");
  session.run("SET GLOBAL read_only = 0");
  while (pay_for(2).how != How::committed) back_off();
  EXPECT_EQ(session.run("SELECT COUNT(*) FROM payments"), "2");
}

// The attempt's step is the owner's of the schema, who may write to a replica; the COMMIT is the
// store's user's, who may not.
TEST(MysqlServer, S17_T57_a_commit_that_the_server_refuses_is_in_doubt) {
  const MysqlServer server;
  MysqlSession session(server.url());
  (void)open_by_url(server.url());
  session.run(std::string(payments_table) +
              " ENGINE=InnoDB; CREATE USER app; GRANT ALL ON idem.* TO app");
  const auto store = open_by_url(fmt::format("mysql://app@{}/idem", server.address()));
  const Execute attempt = run(*store, 1);
  const auto end = store->transactions()->run(
      under(attempt, [&](Transaction& transaction, const RecordId& id, const Attempt& of) {
        auto step = pay(transaction, "p", id, of);
        session.run("SET GLOBAL read_only = 1");
        return step;
      }));
  EXPECT_EQ(end.how, How::in_doubt) << end.why;
  EXPECT_NE(end.why.find("read-only"), std::string::npos) << end.why;
  EXPECT_EQ(session.run("SELECT COUNT(*) FROM payments"), "0");
  session.run("SET GLOBAL read_only = 0");
  for (;;) {
    const auto released = try_ask(*store, a_release(attempt));
    if (released) {
      EXPECT_EQ(released->verdict, Verdict::done);
      break;
    }
    back_off();
  }
}

}  // namespace
}  // namespace idem::test
