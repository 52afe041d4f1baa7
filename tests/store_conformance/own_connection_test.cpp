#include "store/postgres/postgres_store.hpp"
#include "store_conformance/transacting.hpp"

#include <idem/postgres.hpp>

#include <libpq-fe.h>

/// A service that completes its record on a connection of its own (include/idem/postgres.hpp).
namespace idem::test {
namespace {

class OwnConnection : public testing::Test {
 protected:
  OwnConnection() {
    auto store = open_postgres(database_.uri(), test_settings(), {});
    if (!store) std::abort();
    store_ = std::move(*store);
    connection_ = PQconnectdb(database_.uri().c_str());
    PQsetNoticeReceiver(connection_, [](void*, const PGresult*) {}, nullptr);
    exec("CREATE TABLE payments (id TEXT)");
  }
  ~OwnConnection() override { PQfinish(connection_); }

  Execute run(int key_number) {
    Reserve verb = a_reserve(key_number);
    verb.generation = store_->identity().generation;
    return std::get<Execute>(ask_and_wait(*store_, verb).value());
  }
  /// The server's command tag.
  std::string exec(const char* sql) {
    PGresult* const result = PQexec(connection_, sql);
    std::string tag = PQcmdStatus(result);
    PQclear(result);
    return tag;
  }
  std::string payments() { return Psql(database_.uri()).run("SELECT count(*) FROM payments"); }
  Record record(int key_number) { return ask_and_wait(*store_, Find{key(key_number)})->value(); }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  pg_conn* connection_ = nullptr;
};

constexpr const char* insert = "INSERT INTO payments VALUES ('p')";

TEST_F(OwnConnection, S17_T57_completes_in_the_callers_transaction) {
  const Execute attempt = run(1);
  StoredResponse response = answer(201, std::string("any\0byte\xff", 9));
  response.headers.push_back({"X-Latin", "caf\xe9"});
  for (const char* const ending : {"ROLLBACK", "COMMIT"}) {
    exec("BEGIN");
    exec(insert);
    const auto done = complete_on(connection_, attempt.id, attempt.attempt, response, "ref");
    ASSERT_TRUE(done.has_value()) << done.error().message;
    EXPECT_EQ(record(1).state, State::in_progress);
    EXPECT_EQ(exec(ending), ending);
  }
  EXPECT_EQ(payments(), "1");
  EXPECT_EQ(record(1).state, State::completed);
  EXPECT_EQ(record(1).response, response);
  EXPECT_EQ(record(1).upstream_reference, "ref");
}

TEST_F(OwnConnection, S16_a_phase_commits_in_the_callers_transaction) {
  const Execute attempt = run(1);
  exec("BEGIN");
  exec(insert);
  ASSERT_TRUE(advance_on(connection_, attempt.id, attempt.attempt, "charged").has_value());
  EXPECT_EQ(exec("COMMIT"), "COMMIT");
  EXPECT_EQ(record(1).recovery_point, "charged");
  EXPECT_EQ(payments(), "1");
}

TEST_F(OwnConnection, S17_T57_a_late_owner_cannot_commit_its_rows) {
  const Execute attempt = run(1);
  ASSERT_EQ(ask_and_wait(*store_, a_complete(attempt))->verdict, Verdict::done);
  const auto fails = [&](auto verb, const char* sqlstate) {
    exec("BEGIN");
    exec(insert);
    const std::expected<void, PostgresError> ended = verb();
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().sqlstate, sqlstate) << ended.error().message;
    EXPECT_EQ(exec("COMMIT"), "ROLLBACK");
  };
  fails([&] { return complete_on(connection_, attempt.id, attempt.attempt, answer()); }, "IDM02");
  fails([&] { return advance_on(connection_, attempt.id, attempt.attempt, "x"); }, "IDM02");
  const Attempt other{attempt.attempt.fence + 1, attempt.attempt.token};
  fails([&] { return complete_on(connection_, attempt.id, other, answer()); }, "IDM01");
  // An answer that no record can hold fails the transaction as well.
  const Execute sound = run(2);
  fails([&] { return complete_on(connection_, sound.id, sound.attempt, answer(7)); }, "IDM05");
  EXPECT_EQ(payments(), "0");
  EXPECT_TRUE((PostgresError{"IDM02", ""}.is_late()));
  EXPECT_FALSE((PostgresError{"IDM04", ""}.is_late()));
}

TEST_F(OwnConnection, S17_outside_of_a_transaction_nothing_is_done) {
  const Execute attempt = run(1);
  const auto refused = complete_on(connection_, attempt.id, attempt.attempt, answer());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().sqlstate, "25P01");
  EXPECT_EQ(record(1).state, State::in_progress);
  // In one that failed before, the server refuses.
  exec("BEGIN");
  exec("no statement");
  const auto failed = complete_on(connection_, attempt.id, attempt.attempt, answer());
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().sqlstate, "25P02");
}

TEST_F(OwnConnection, V15_a_connection_that_is_gone_is_reported) {
  const Execute attempt = run(1);
  exec("BEGIN");
  Psql(database_.uri())
      .run("SELECT pg_terminate_backend(" + std::to_string(PQbackendPID(connection_)) + ", 10000)");
  const auto lost = complete_on(connection_, attempt.id, attempt.attempt, answer());
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().sqlstate, "");
  EXPECT_EQ(record(1).state, State::in_progress);
}

}  // namespace
}  // namespace idem::test
