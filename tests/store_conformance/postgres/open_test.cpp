#include "store/postgres/postgres_store.hpp"
#include "store_conformance/asking.hpp"
#include "support/back_off.hpp"

#include <idem/transaction.hpp>

#include <algorithm>

/// The checks and refusals of a start on PostgreSQL, and the store that it makes.
namespace idem::test {
namespace {

std::string refusal(const std::string& uri, const PostgresOptions& options = {},
                    const IdentitySettings& settings = test_settings()) {
  const auto store = open_postgres(uri, settings, options);
  return store ? std::string() : store.error().detail;
}

TEST(PostgresOpen, S02_settings_that_forget_are_refused_by_name) {
  PostgresServer server;
  Psql session(server.uri());
  EXPECT_EQ(refusal(server.uri()), "");
  for (const std::string setting : {"fsync", "full_page_writes", "synchronous_commit"}) {
    session.run("ALTER SYSTEM SET " + setting + " = off");
    session.run("SELECT pg_reload_conf()");
    while (Psql(server.uri()).run("SHOW " + setting) != "off") back_off();
    EXPECT_TRUE(refusal(server.uri()).starts_with(setting + " is off: ")) << refusal(server.uri());
    session.run("ALTER SYSTEM RESET " + setting);
    session.run("SELECT pg_reload_conf()");
    while (Psql(server.uri()).run("SHOW " + setting) != "on") back_off();
  }
  for (const std::string level : {"serializable", "repeatable read", "read uncommitted"}) {
    session.run("ALTER ROLE postgres SET default_transaction_isolation = '" + level + "'");
    EXPECT_TRUE(
        refusal(server.uri()).starts_with("default_transaction_isolation is " + level + ": "));
  }
  session.run("ALTER ROLE postgres SET default_transaction_isolation = 'read committed'");
  EXPECT_EQ(refusal(server.uri()), "");
  session.run("ALTER ROLE postgres SET default_transaction_read_only = on");
  EXPECT_NE(refusal(server.uri()), "");
}

TEST(PostgresOpen, S22_a_server_whose_syncs_are_switched_off_meanwhile_is_refused_as_at_a_start) {
  PostgresServer server;
  Psql session(server.uri());
  const auto store = open_postgres(server.uri(), test_settings(), {});
  ASSERT_TRUE(store) << store.error().detail;
  run(**store, 1);
  session.run("ALTER SYSTEM SET fsync = off");
  session.run("SELECT pg_reload_conf()");
  int number = 2;
  std::expected<ReserveOutcome, StoreError> outcome;
  do {
    back_off();
    outcome = try_ask(**store, a_reserve(number++));
  } while (outcome);
  EXPECT_EQ(outcome.error().code, StoreError::Code::unavailable);
  EXPECT_NE(outcome.error().detail.find("fsync is off: "), std::string::npos)
      << outcome.error().detail;
  session.run("ALTER SYSTEM RESET fsync");
  session.run("SELECT pg_reload_conf()");
  do {
    back_off();
    outcome = try_ask(**store, a_reserve(number++));
  } while (!outcome);
}

TEST(PostgresOpen, S22_a_look_names_who_holds_back_vacuum_and_who_locks_the_tables) {
  const TestDatabase database;
  ASSERT_TRUE(open_postgres(database.uri(), test_settings(), {}));
  std::vector<std::string> warnings;
  PostgresOptions look;
  look.warn = [&](const std::string& text) { warnings.push_back(text); };
  look.which = {.make = false, .look = true};
  Psql holder(database.uri());
  const std::string pid = holder.run("SELECT pg_backend_pid()");
  holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM idem.slots");
  const auto names = [&](const std::string& what) {
    return std::ranges::any_of(
        warnings, [&](const std::string& one) { return one.find(what) != std::string::npos; });
  };
  while (!names("the transaction of pid " + pid + " ")) {
    warnings.clear();
    EXPECT_EQ(refusal(database.uri(), look), "");
    back_off();
  }
  EXPECT_TRUE(names("SELECT pg_terminate_backend(" + pid + ")"));
  holder.run("LOCK TABLE idem.slots IN EXCLUSIVE MODE");
  EXPECT_TRUE(
      refusal(database.uri(), look)
          .starts_with("pid " + pid + " of user postgres holds ExclusiveLock on idem.slots"))
      << refusal(database.uri(), look);
  holder.run("ROLLBACK");
  warnings.clear();
  EXPECT_EQ(refusal(database.uri(), look), "");
  EXPECT_FALSE(names("the transaction of pid " + pid));
}

TEST(PostgresOpen, S02_commits_that_standbys_may_not_have_are_refused) {
  PostgresServer server;
  Psql session(server.uri());
  session.run("ALTER ROLE postgres SET synchronous_commit = 'local'");
  EXPECT_EQ(refusal(server.uri()), "") << "there is no standby that could be asked to wait for";
  session.run("SET synchronous_commit = 'local'");
  session.run("ALTER SYSTEM SET synchronous_standby_names = 'other'");
  session.run("SELECT pg_reload_conf()");
  while (Psql(server.uri()).run("SHOW synchronous_standby_names") != "other") {
    back_off();
  }
  EXPECT_TRUE(refusal(server.uri()).starts_with("synchronous_commit is local, ")) << "now there is";
}

TEST(PostgresOpen, S02_what_a_code_of_the_server_means_is_said_beside_it) {
  const TestDatabase database;
  const TestRole clerk(database.uri());
  const std::string no_right = refusal(clerk.uri());
  EXPECT_TRUE(no_right.contains("permission denied")) << no_right;
  EXPECT_TRUE(
      no_right.contains("(42501); this role lacks the right: connect as the role that owns"))
      << no_right;
  const TestRole owner(database.uri(), "SUPERUSER");
  Psql(database.uri()).run("ALTER ROLE " + owner.name() + " SET statement_timeout = '1ms'");
  const std::string ended = refusal(owner.uri());
  EXPECT_TRUE(ended.contains("(57014); a limit of time ended the statement")) << ended;
  EXPECT_TRUE(ended.contains("statement_timeout = 0")) << ended;
}

TEST(PostgresOpen, large_answers_and_stored_requests_are_compressed_by_lz4) {
  const TestDatabase database;
  const auto store = open_postgres(database.uri(), test_settings(), {});
  ASSERT_TRUE(store) << store.error().detail;
  const std::string large(9'000, 'x');
  ASSERT_TRUE(ask_and_wait(**store, a_complete(run(**store, 1), answer(201, large))));
  Accept accept = an_accept(2);
  accept.as.generation = (*store)->identity().generation;
  accept.request = large;
  ASSERT_TRUE(ask_and_wait(**store, accept));

  Psql session(database.uri());
  EXPECT_EQ(session.run("SELECT pg_column_compression(body) FROM idem.answers"), "lz4");
  EXPECT_EQ(session.run("SELECT pg_column_compression(request) FROM idem.slots WHERE request IS"
                        " NOT NULL"),
            "lz4");
  const auto outcome = try_ask(**store, a_reserve(1, 2));
  ASSERT_TRUE(outcome && is<Replay>(*outcome));
  EXPECT_EQ(std::get<Replay>(*outcome).response.body, large);
}

TEST(PostgresOpen, too_few_connections_are_refused_at_the_start) {
  const TestDatabase database;
  const TestRole role(database.uri());
  Psql session(database.uri());
  session.run("GRANT CREATE ON DATABASE " + session.run("SELECT current_database()") + " TO " +
              role.name());
  EXPECT_EQ(refusal(role.uri()), "");
  session.run("ALTER ROLE " + role.name() + " CONNECTION LIMIT 4");
  EXPECT_TRUE(refusal(role.uri()).starts_with("this role may have 4 connections, and 5 are needed"))
      << refusal(role.uri());
  session.run("ALTER ROLE " + role.name() + " CONNECTION LIMIT 5");
  EXPECT_EQ(refusal(role.uri()), "");
  const PostgresServer small("max_connections=7");
  Psql admin(small.uri());
  EXPECT_EQ(refusal(small.uri()), "") << "a superuser may have those that are reserved, too";
  admin.run("CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain");
  admin.run("DROP SCHEMA idem CASCADE");
  std::string plain = small.uri();
  plain.replace(plain.find("user=postgres"), 13, "user=plain");
  EXPECT_TRUE(refusal(plain).starts_with("this role may have 4 connections")) << refusal(plain);
}

TEST(PostgresOpen, a_foreign_schema_stays_as_it_is) {
  const TestDatabase database;
  Psql session(database.uri());
  session.run("CREATE SCHEMA idem; CREATE TABLE idem.theirs (x int)");
  EXPECT_EQ(refusal(database.uri()), "the schema 'idem' holds something else");
  EXPECT_EQ(session.run("SELECT count(*) FROM pg_class WHERE relnamespace = 'idem'::regnamespace"),
            "1");
}

TEST(PostgresOpen, V03_no_store_is_made_in_a_schema_that_another_role_has_prepared) {
  const TestDatabase database;
  Psql session(database.uri());
  const TestRole attacker(database.uri());
  session.run("CREATE SCHEMA idem AUTHORIZATION " + attacker.name());
  EXPECT_NE(refusal(database.uri()).find("belongs to the role '" + attacker.name() + "'"),
            std::string::npos);
  session.run(
      "ALTER SCHEMA idem OWNER TO CURRENT_USER;"
      " CREATE FUNCTION idem.matches(bytea[], text) RETURNS bool LANGUAGE sql RETURN true");
  EXPECT_EQ(refusal(database.uri()), "the schema 'idem' holds something else");
  session.run("DROP FUNCTION idem.matches");
  EXPECT_EQ(refusal(database.uri()), "") << "an empty one of its own";
}

TEST(PostgresOpen, a_schema_of_a_later_version_is_refused) {
  const TestDatabase database;
  EXPECT_EQ(refusal(database.uri()), "");
  Psql session(database.uri());
  session.run("INSERT INTO idem.schema_version (version, name) VALUES (9999, 'of tomorrow')");
  EXPECT_TRUE(refusal(database.uri()).starts_with("it has schema version 9999, "));
}

TEST(PostgresOpen, a_schema_from_before_the_first_release_is_refused) {
  const TestDatabase database;
  EXPECT_EQ(refusal(database.uri()), "");
  Psql(database.uri()).run("DROP TABLE idem.schema_functions");
  EXPECT_NE(refusal(database.uri(), {.migrate = true}).find("before the first release"),
            std::string::npos);
}

TEST(PostgresOpen, S02_functions_of_an_older_program_are_replaced_with_migrate_only) {
  const TestDatabase database;
  EXPECT_EQ(refusal(database.uri()), "");
  Psql session(database.uri());
  session.run(
      "UPDATE idem.schema_functions SET checksum = 'older', program = '0.0.9',"
      " signatures = signatures || ARRAY['idem.ours_of_then(idem.state)', 'idem.gone_anyway()'];"
      " CREATE FUNCTION idem.ours_of_then(s idem.state) RETURNS int LANGUAGE sql RETURN 1;"
      " CREATE FUNCTION idem.theirs() RETURNS int LANGUAGE sql RETURN 1;"
      " CREATE OR REPLACE FUNCTION idem.tombstone_charge() RETURNS bigint LANGUAGE sql IMMUTABLE"
      " RETURN 1");
  EXPECT_EQ(refusal(database.uri()),
            "its functions are of an older program, idem 0.0.9: start with --migrate to upgrade "
            "them");
  EXPECT_EQ(session.run("SELECT idem.tombstone_charge()"), "1");
  EXPECT_EQ(refusal(database.uri(), {.migrate = true}), "");
  EXPECT_EQ(session.run("SELECT idem.tombstone_charge()"), "256");
  EXPECT_EQ(session.run("SELECT concat_ws('|', to_regproc('idem.ours_of_then') IS NULL,"
                        " to_regproc('idem.theirs') IS NOT NULL,"
                        " (SELECT count(*) FROM idem.schema_functions))"),
            "t|t|2");
  EXPECT_EQ(refusal(database.uri()), "") << "and that was it";
  EXPECT_EQ(session.run("SELECT count(*) FROM idem.schema_functions"), "2");
}

TEST(PostgresOpen, S02_an_upgrade_does_not_depend_on_how_the_session_quotes_names) {
  const TestDatabase database;
  EXPECT_EQ(refusal(database.uri()), "");
  Psql session(database.uri());
  for (const std::string quotes : {"on", "off"}) {
    session.run("ALTER DATABASE " + session.run("SELECT current_database()") +
                " SET quote_all_identifiers = " + quotes);
    session.run(
        "UPDATE idem.schema_functions SET checksum = number::text, program = '0.0.9',"
        " signatures = signatures || ARRAY['idem.ours_of_then(idem.state)'];"
        " CREATE FUNCTION idem.ours_of_then(s idem.state) RETURNS int LANGUAGE sql RETURN 1");
    EXPECT_EQ(refusal(database.uri(), {.migrate = true}), "") << quotes;
    EXPECT_EQ(session.run("SELECT to_regproc('idem.ours_of_then') IS NULL"), "t") << quotes;
  }
}

TEST(PostgresOpen, S02_an_operators_view_on_a_dropped_function_stops_the_upgrade) {
  const TestDatabase database;
  EXPECT_EQ(refusal(database.uri()), "");
  Psql session(database.uri());
  session.run(
      "UPDATE idem.schema_functions SET checksum = 'older', program = '0.0.9',"
      " signatures = signatures || ARRAY['idem.ours_of_then()'];"
      " CREATE FUNCTION idem.ours_of_then() RETURNS int LANGUAGE sql RETURN 1;"
      " CREATE VIEW public.theirs AS SELECT idem.ours_of_then()");
  EXPECT_NE(refusal(database.uri(), {.migrate = true}).find("idem.ours_of_then()"),
            std::string::npos);
  EXPECT_EQ(session.run(
                "SELECT concat_ws('|', idem.ours_of_then(), checksum) FROM idem.schema_functions"),
            "1|older");
}

TEST(PostgresOpen, S02_functions_of_a_newer_program_are_never_replaced) {
  const TestDatabase database;
  EXPECT_EQ(refusal(database.uri()), "");
  Psql session(database.uri());
  // A later version's, whose functions this program never saw; or its own, replaced since.
  for (const std::string program : {"'99.0.0'", "program"}) {
    session.run(
        "INSERT INTO idem.schema_functions (checksum, program, signatures)"
        " SELECT 'another', " +
        program +
        ", signatures FROM idem.schema_functions"
        " ORDER BY number LIMIT 1");
    for (const bool migrate : {false, true}) {
      const std::string complaint = refusal(database.uri(), {.migrate = migrate});
      EXPECT_TRUE(complaint.starts_with("its functions are of a newer program, idem "))
          << complaint;
    }
    session.run("DELETE FROM idem.schema_functions WHERE checksum = 'another'");
  }
  // Of a later version, and the functions of this one are not in the list of what was there.
  session.run("UPDATE idem.schema_functions SET checksum = 'another', program = '0.1000.0'");
  EXPECT_TRUE(refusal(database.uri(), {.migrate = true})
                  .starts_with("its functions are of a newer program, idem 0.1000.0"));
}

TEST(PostgresOpen, S02_a_node_that_runs_beside_a_newer_schema_is_refused_when_it_reconnects) {
  const TestDatabase database;
  auto store = open_postgres(database.uri(), test_settings(), {});
  ASSERT_TRUE(store.has_value());
  const auto reserve = [&](int number) {
    Reserve verb = a_reserve(number);
    verb.generation = (*store)->identity().generation;
    return ask_and_wait(**store, verb);
  };
  ASSERT_TRUE(reserve(1).has_value());
  ASSERT_TRUE((*store)->transactions()->run("SELECT 1").has_value());
  Psql session(database.uri());
  const auto why = [&] {
    session.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
        " current_database() AND pid <> pg_backend_pid()");
    StoreError last;
    for (int round = 0; round < 2; ++round) {
      const auto reply = reserve(2 + round);
      if (reply.has_value()) return std::string("granted");
      last = reply.error();
    }
    return last.detail;
  };
  session.run("INSERT INTO idem.schema_version VALUES (9999, 'of tomorrow')");
  EXPECT_NE(why().find("its schema was changed by another version"), std::string::npos);
  const auto rows = (*store)->transactions()->run("SELECT 1");
  ASSERT_FALSE(rows.has_value()) << "nor do a service's own transactions go on";
  EXPECT_NE(rows.error().find("its schema was changed by another version"), std::string::npos);
  session.run(
      "DELETE FROM idem.schema_version WHERE version = 9999;"
      " INSERT INTO idem.schema_functions (checksum, program, signatures)"
      " VALUES ('newer', '99.0.0', '{}')");
  EXPECT_NE(why().find("its schema was changed by another version"), std::string::npos);
  EXPECT_EQ(session.run("SELECT count(*) FROM idem.slots"), "1");
}

TEST(PostgresOpen, nodes_that_start_at_one_time_make_one_store) {
  const TestDatabase database;
  std::vector<std::thread> nodes;
  std::atomic<int> opened{0};
  std::mutex mutex;
  std::set<std::array<std::uint8_t, 32>> secrets;
  for (int i = 0; i < 4; ++i) {
    nodes.emplace_back([&] {
      const auto store = open_postgres(database.uri(), test_settings(), {});
      if (!store) return;
      ++opened;
      const std::lock_guard lock(mutex);
      secrets.insert((*store)->identity().secret);
    });
  }
  for (auto& node : nodes) node.join();
  EXPECT_EQ(opened, 4);
  EXPECT_EQ(secrets.size(), 1U);
}

TEST(PostgresOpen, an_uri_that_cannot_be_read_or_reached_is_reported_without_its_password) {
  for (const std::string uri :
       {"postgres://u:s3cret@127.0.0.1:1/db?connect_timeout=1", "postgres://u:s3cret@h/db?s3cret=1",
        "postgres://u:s3cret@[::1/db", "postgres://u:s3cret@h:s3cret/db"}) {
    const std::string complaint = refusal(uri);
    EXPECT_NE(complaint, "");
    EXPECT_EQ(complaint.find("s3cret"), complaint.npos) << complaint;
  }
}

TEST(PostgresOpen, S02_another_identity_is_refused_while_there_are_records) {
  const TestDatabase database;
  {
    auto store = open_postgres(database.uri(), test_settings(), {});
    ASSERT_TRUE(store.has_value());
    Reserve verb = a_reserve(1);
    verb.generation = (*store)->identity().generation;
    ASSERT_TRUE(ask_and_wait(**store, verb).has_value());
  }
  IdentitySettings other = test_settings();
  other.key_scope = "tenant";
  EXPECT_TRUE(refusal(database.uri(), {}, other).starts_with("key.scope is 'operation' since "));
  other = test_settings();
  other.secrets.emplace_back();
  EXPECT_EQ(refusal(database.uri(), {}, other), "") << "a new secret, the old one still known";
}

}  // namespace
}  // namespace idem::test
