#include "store/postgres/lineage.hpp"
#include "store_conformance/postgres/asking.hpp"
#include "support/back_off.hpp"

#include <fmt/format.h>

/// Whether a later server at the store's place knows all replies already given.
namespace idem::test {
namespace {

/// Asks until it is answered, as a store that is away is found again by itself.
ReserveOutcome ask_until_answered(Store& store, const Reserve& verb) {
  for (;;) {
    if (auto outcome = try_ask(store, verb)) return std::move(*outcome);
    back_off();
  }
}

TEST(PostgresLineage, S02_a_deposed_primary_that_comes_back_is_refused) {
  PostgresServer old;
  PostgresServer next = PostgresServer::standby_of(old);
  const std::string both =
      fmt::format("postgres:///postgres?host={},{}&user=postgres", old.folder(), next.folder());
  const auto store = open_by_uri(both);
  run(*store, 1);
  const std::string written = Psql(old.uri()).run("SELECT pg_current_wal_flush_lsn()");
  Psql following(next.uri());
  while (following.run("SELECT pg_last_wal_replay_lsn() >= '" + written + "'") != "t") {
    back_off();
  }
  old.stop();
  next.promote();
  EXPECT_TRUE(is<Execute>(ask_until_answered(*store, a_reserve(2))));
  EXPECT_TRUE(is<InProgress>(try_ask(*store, a_reserve(1, 2)).value())) << "it had that, too";

  next.stop();
  old.start();
  for (;;) {
    const auto refused = try_ask(*store, a_reserve(2, 2));
    ASSERT_FALSE(refused.has_value()) << describe(*refused);
    if (refused.error().detail.find("a deposed primary") != std::string::npos) break;
    back_off();
  }
  old.stop();
  next.start();
  EXPECT_TRUE(is<InProgress>(ask_until_answered(*store, a_reserve(2, 2))));
}

TEST(PostgresLineage, S02_a_server_that_has_forgotten_fences_is_refused) {
  const TestDatabase database;
  const auto store = open_by_uri(database.uri());
  const Execute granted = run(*store, 1);
  Psql session(database.uri());
  const auto cut = [&] {
    session.run(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name = 'idem' AND datname = current_database()");
  };
  session.run(fmt::format("SELECT setval('idem.fences', {})", granted.attempt.fence + 5));
  run(*store, 2);
  session.run(fmt::format("SELECT setval('idem.fences', {})", granted.attempt.fence + 5));
  cut();
  const auto refused = try_ask(*store, a_reserve(3));
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().detail.find("it has lost the last records"), std::string::npos)
      << refused.error().detail;
}

TEST(PostgresLineage, S02_a_server_that_lacks_replies_already_given_is_refused) {
  postgres::Lineage lineage;
  EXPECT_FALSE(lineage.why_refused({7, 1, 10}, std::nullopt));
  EXPECT_FALSE(lineage.why_refused({7, 2, 12}, lineage.known_fence())) << "a standby took over";
  EXPECT_TRUE(lineage.why_refused({7, 1, 13}, lineage.known_fence()).has_value());
  EXPECT_TRUE(lineage.why_refused({8, 2, 13}, lineage.known_fence()).has_value());
  EXPECT_TRUE(lineage.why_refused({7, 2, 11}, lineage.known_fence()).has_value());
  const auto known = lineage.known_fence();
  lineage.note(Fence{20});  // Granted by another lane while this one's server was asked.
  EXPECT_FALSE(lineage.why_refused({7, 2, 12}, known));
  EXPECT_TRUE(lineage.why_refused({7, 2, 12}, lineage.known_fence()).has_value());
  EXPECT_FALSE(lineage.why_refused({0, 0, std::nullopt}, lineage.known_fence()))
      << "it cannot be seen";
  EXPECT_EQ(lineage.timeline(), 2);
}

}  // namespace
}  // namespace idem::test
