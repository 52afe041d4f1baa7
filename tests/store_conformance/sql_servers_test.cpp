#include "store_conformance/mysql/asking.hpp"
#include "store_conformance/postgres/asking.hpp"
#include "store_conformance/transacting.hpp"
#include "support/back_off.hpp"

#include <functional>

/// What the stores in PostgreSQL and MariaDB do alike, though each has code of its own for it
/// (docs/internals/pairs_sql_server.md).
namespace idem::test {
namespace {

/// A database of one kind behind a proxy, and what ends its sessions.
class SqlServers : public testing::TestWithParam<std::string> {
 protected:
  SqlServers() {
    if (is_postgres()) {
      postgres_.emplace();
      proxy_.emplace(socket_of(postgres_->uri()));
      store_ = open_by_uri(through(*proxy_, postgres_->uri()));
    } else {
      mysql_.emplace();
      proxy_.emplace(address_in(mysql_->url()));
      store_ = open_by_url(by_proxy(*proxy_, mysql_->url()));
    }
  }

  static bool is_postgres() { return GetParam() == "postgres"; }

  std::string sessions() const {
    if (is_postgres()) {
      return Psql(postgres_->uri())
          .run(
              "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
              " AND pid <> pg_backend_pid()");
    }
    return MysqlSession(mysql_->url())
        .run("SELECT count(*) FROM information_schema.processlist WHERE db = '" + mysql_->name() +
             "' AND id <> CONNECTION_ID()");
  }
  /// Ends all sessions but this one, and waits until the server has none of them.
  void end_sessions() const {
    if (is_postgres()) {
      Psql(postgres_->uri())
          .run(
              "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
              " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    } else {
      MysqlSession session(mysql_->url());
      (void)session.try_run(session.run(
          "SELECT GROUP_CONCAT('KILL ', id SEPARATOR ';') FROM information_schema.processlist"
          " WHERE db = '" +
          mysql_->name() + "' AND id <> CONNECTION_ID()"));
    }
    while (sessions() != "0") back_off();
  }

  /// None: the store answered.
  using Reading = std::function<std::optional<StoreError>()>;
  template <class Verb>
  Reading reads(Verb verb) {
    return [this, verb]() -> std::optional<StoreError> {
      auto reply = try_ask(*store_, verb);
      return reply ? std::nullopt : std::optional(reply.error());
    };
  }

  std::optional<TestDatabase> postgres_{};
  std::optional<TestMysqlDatabase> mysql_{};
  std::optional<CuttingProxy> proxy_{};
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Both, SqlServers, testing::Values("postgres", "mysql"),
                         [](const auto& named) { return named.param; });

TEST_P(SqlServers, S04_a_read_whose_replies_are_lost_is_unavailable_and_never_in_doubt) {
  constexpr unsigned seed = 1;
  fmt::print("seed {}\n", seed);
  run(*store_, 1);
  ASSERT_TRUE(try_ask(*store_, AppendLine{"audit", 0, "a line"})->appended);
  const std::pair<const char*, Reading> readings[] = {
      {"Find", reads(Find{key(1)})},
      {"List", reads(List{})},
      {"ReadEvidence", reads(ReadEvidence{key(1)})},
      {"ReadLines", reads(ReadLines{"audit", 0, 10})},
      {"ListJournals", reads(ListJournals{})}};
  for (const auto& [name, reading] : readings) {
    // The connection is there, and the statement is prepared: the call itself is sent.
    proxy_->lose_answers(0, seed);
    for (int use = 1; use <= 3; ++use) {
      while (reading()) back_off();
    }
    const int before = proxy_->lost();
    proxy_->lose_answers(1, seed);
    const auto failure = reading();
    ASSERT_TRUE(failure) << name;
    EXPECT_EQ(failure->code, StoreError::Code::unavailable) << name << ": " << failure->detail;
    EXPECT_GT(proxy_->lost(), before) << name;
  }
  proxy_->lose_answers(0, seed);
}

// Neither may be sent twice, so a lost one is in doubt; one that was never sent is not.
TEST_P(SqlServers, S04_a_line_or_a_decision_that_meets_an_ended_session_is_made_once) {
  for (int round = 1; round <= 5; ++round) {
    const Execute attempt = run(*store_, round);
    ASSERT_EQ(try_ask(*store_, a_mark_unknown(attempt))->verdict, Verdict::done);
    const auto behind = static_cast<std::uint64_t>(2 * (round - 1));
    ASSERT_TRUE(try_ask(*store_, AppendLine{"audit", behind, "before"})->appended);
    end_sessions();
    const auto appended = try_ask(*store_, AppendLine{"audit", behind + 1, "after"});
    ASSERT_TRUE(appended) << appended.error().detail;
    EXPECT_TRUE(appended->appended);
    EXPECT_EQ(try_ask(*store_, ReadLines{"audit", 0, 100})->lines.size(), behind + 2);
    end_sessions();
    const auto resolved =
        try_ask(*store_, a_resolve(round, Resolve::As::completed, attempt.attempt.fence));
    ASSERT_TRUE(resolved) << resolved.error().detail;
    EXPECT_EQ(resolved->verdict, Resolve::Verdict::done);
    EXPECT_EQ(try_ask(*store_, ReadEvidence{key(round)})->size(), 1U);
  }
}

TEST_P(SqlServers, S19_what_a_trigger_of_the_store_refuses_is_refused) {
  ASSERT_TRUE(try_ask(*store_, AppendLine{"audit", 0, "a line"})->appended);
  const auto dropped = try_ask(*store_, DropJournal{"audit", 1});
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.error().code, StoreError::Code::refused) << dropped.error().detail;
  EXPECT_EQ(try_ask(*store_, ReadLines{"audit", 0, 10})->lines.size(), 1U);
}

TEST_P(SqlServers, S17_a_statement_alone_neither_begins_nor_ends_a_transaction) {
  for (const char* const sql : {"BEGIN", "START TRANSACTION", "commit", "/* why */ ROLLBACK"}) {
    const auto rows = store_->transactions()->run(sql);
    ASSERT_FALSE(rows) << sql;
    EXPECT_NE(rows.error().find("a transaction of its own"), std::string::npos) << rows.error();
  }
  EXPECT_TRUE(store_->transactions()->run(payments_table)) << "this one may";
}

TEST_P(SqlServers, S15_S17_a_service_that_ends_an_expired_lease_learns_it) {
  ASSERT_TRUE(store_->transactions()->run(payments_table));
  Reserve brief = a_reserve_in(*store_, 1);
  brief.lease = 1ms;
  brief.dispatched = false;
  ASSERT_TRUE(is<Execute>(*ask_and_wait(*store_, brief)));
  TransactionEnd end;
  do {  // Until the lease is over by the server's clock.
    end = store_->transactions()->run({a_reserve_in(*store_, 1, 2), {}, {}, pays("p")});
  } while (end.how == TransactionEnd::How::not_run);
  ASSERT_EQ(end.how, TransactionEnd::How::committed) << end.why;
  ASSERT_TRUE(end.reserved && is<Execute>(*end.reserved));
  EXPECT_TRUE(std::get<Execute>(*end.reserved).ended_lease);
  EXPECT_EQ(try_ask(*store_, Count{})->leases_ended, 1U);
}

}  // namespace
}  // namespace idem::test
