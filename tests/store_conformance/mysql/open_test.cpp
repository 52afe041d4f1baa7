#include "store_conformance/mysql/asking.hpp"
#include "support/back_off.hpp"

/// The checks and refusals of a start on MariaDB, and the schema that it makes.
namespace idem::test {
namespace {

void expect_refused(const std::string& complaint, const std::string& begins) {
  EXPECT_TRUE(complaint.starts_with(begins)) << complaint;
}

TEST(MysqlOpen, S02_settings_that_forget_are_refused_by_name) {
  const MysqlServer server;
  MysqlSession session(server.url());
  EXPECT_EQ(refusal(server.url()), "");
  const std::pair<std::string, std::string> settings[] = {{"innodb_flush_log_at_trx_commit", "0"},
                                                          {"innodb_flush_log_at_trx_commit", "2"}};
  for (const auto& [name, value] : settings) {
    const std::string before = session.run("SELECT @@GLOBAL." + name);
    session.run("SET GLOBAL " + name + " = " + value);
    expect_refused(refusal(server.url()), name + " is " + value + ": ");
    session.run("SET GLOBAL " + name + " = " + before);
    EXPECT_EQ(refusal(server.url()), "");
  }
  session.run("SET GLOBAL sql_mode = ''");
  expect_refused(refusal(server.url()), "sql_mode is not strict: ");
  session.run("SET GLOBAL sql_mode = DEFAULT");
  session.run("SET GLOBAL max_allowed_packet = 1048576");
  expect_refused(refusal(server.url()), "max_allowed_packet is 1048576: ");
  session.run("SET GLOBAL max_allowed_packet = DEFAULT");
  EXPECT_EQ(refusal(server.url()), "");
}

TEST(MysqlOpen, S22_a_server_whose_syncs_are_switched_off_meanwhile_is_refused_as_at_a_start) {
  const MysqlServer server;
  MysqlSession session(server.url());
  const auto store = open_by_url(server.url());
  const Execute before = run(*store, 1);
  session.run("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  int number = 2;
  auto outcome = try_ask(*store, a_reserve(number));
  while (outcome) {
    back_off();
    outcome = try_ask(*store, a_reserve(++number));
  }
  EXPECT_EQ(outcome.error().code, StoreError::Code::unavailable);
  EXPECT_NE(outcome.error().detail.find("innodb_flush_log_at_trx_commit is 2: "), std::string::npos)
      << outcome.error().detail;
  session.run("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
  auto settled = try_ask(*store, a_complete(before));
  while (!settled) {
    back_off();
    settled = try_ask(*store, a_complete(before));
  }
  EXPECT_EQ(settled->verdict, Verdict::done);
}

TEST(MysqlOpen, S02_settings_of_a_start_that_forget_are_refused_by_name) {
  const std::pair<std::string, std::string> settings[] = {
      {"innodb_doublewrite=OFF", "innodb_doublewrite is OFF: "},
      {"log-bin=log sync_binlog=0", "sync_binlog is 0: "},
      {"log-bin=log sync_binlog=1 binlog_format=STATEMENT", "binlog_format is STATEMENT: "},
      {"sysdate-is-now", "sysdate_is_now is ON: "},
      {"innodb_force_recovery=1", "innodb_force_recovery is 1: "}};
  for (const auto& [lines, begins] : settings) {
    const MysqlServer server(lines);
    expect_refused(refusal(server.url()), begins);
  }
}

TEST(MysqlOpen, S02_a_replica_is_refused) {
  const MysqlServer server;
  MysqlSession session(server.url());
  session.run("SET GLOBAL read_only = 1");
  expect_refused(refusal(server.url()), "read_only is ON: it is a replica");
  session.run("SET GLOBAL read_only = 0");
  EXPECT_EQ(refusal(server.url()), "");
}

TEST(MysqlOpen, S02_the_first_server_of_several_that_is_none_is_passed_over) {
  const MysqlServer replica("read_only=1");
  const MysqlServer primary;
  const std::string url =
      fmt::format("mysql://root@127.0.0.1:1,{},{}/idem", replica.address(), primary.address());
  const auto store = open_by_url(url);
  run(*store, 1);
  EXPECT_EQ(MysqlSession(primary.url()).run("SELECT COUNT(*) FROM idem_slots"), "1");
}

TEST(MysqlOpen, S02_tables_of_another_engine_are_refused) {
  const TestMysqlDatabase database;
  MysqlSession session(database.url());
  EXPECT_EQ(refusal(database.url()), "");
  for (const std::string engine : {"MyISAM", "Aria"}) {
    session.run("ALTER TABLE idem_slots ENGINE=" + engine);
    expect_refused(refusal(database.url()), "the table idem_slots is of the engine " + engine);
  }
  session.run("ALTER TABLE idem_slots ENGINE=InnoDB");
  EXPECT_EQ(refusal(database.url()), "");
}

TEST(MysqlOpen, foreign_tables_stay_as_they_are) {
  const TestMysqlDatabase database;
  MysqlSession session(database.url());
  session.run("CREATE TABLE idem_slots (x INT) ENGINE=InnoDB; CREATE TABLE idem_usage (x INT)");
  EXPECT_EQ(refusal(database.url()), "tables whose names begin with idem_ hold something else");
  EXPECT_EQ(session.run("SELECT COUNT(*) FROM information_schema.tables"
                        " WHERE table_schema = DATABASE()"),
            "2");
}

TEST(MysqlOpen, S02_tables_whose_making_was_cut_off_are_completed) {
  const TestMysqlDatabase database;
  MysqlSession session(database.url());
  EXPECT_EQ(refusal(database.url()), "");
  // As after a crash within the first file: the bookkeeping has noted its beginning.
  session.run(
      "UPDATE idem_schema SET is_done = 0; DELETE FROM idem_schema_functions;"
      " DROP TABLE idem_usage; DROP TABLE idem_journal; DROP FUNCTION idem_micros");
  session.run("DELETE FROM idem_identity");
  const auto store = open_by_url(database.url());
  run(*store, 1);
  EXPECT_EQ(session.run("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema ="
                        " DATABASE() AND table_name IN ('idem_usage', 'idem_journal')"),
            "2");
}

TEST(MysqlOpen, S02_functions_whose_making_was_cut_off_are_made_without_migrate) {
  const TestMysqlDatabase database;
  EXPECT_EQ(refusal(database.url()), "");
  MysqlSession session(database.url());
  // As after a crash within the functions, and as after one between two files of tables.
  for (const std::string cut :
       {"DROP FUNCTION idem_micros", "UPDATE idem_schema SET is_done = 0 WHERE version = 4",
        "DELETE FROM idem_schema WHERE version = 4"}) {
    session.run("DELETE FROM idem_schema_functions; DELETE FROM idem_identity; " + cut);
    EXPECT_EQ(refusal(database.url(), {.migrate = false}), "") << cut;
    EXPECT_EQ(session.run("SELECT COUNT(*) FROM idem_schema WHERE is_done = 1"), "4") << cut;
    EXPECT_NE(session.run("SELECT idem_micros()"), "") << cut;
  }
}

TEST(MysqlOpen, a_schema_of_a_later_version_is_refused) {
  for (const std::string is_done : {"1", "0"}) {
    const TestMysqlDatabase database;
    EXPECT_EQ(refusal(database.url()), "");
    MysqlSession(database.url())
        .run("INSERT INTO idem_schema VALUES (9999, 'of tomorrow', " + is_done + ")");
    expect_refused(refusal(database.url()), "it has schema version 9999, ");
  }
}

TEST(MysqlOpen, S02_functions_of_an_older_program_are_replaced_with_migrate_only) {
  const TestMysqlDatabase database;
  EXPECT_EQ(refusal(database.url()), "");
  MysqlSession session(database.url());
  session.run(
      "UPDATE idem_schema_functions SET checksum = 'older', program = '0.0.9';"
      " CREATE OR REPLACE FUNCTION idem_micros() RETURNS BIGINT NO SQL RETURN 1");
  EXPECT_EQ(refusal(database.url(), {.migrate = false}),
            "its functions are of an older program, idem 0.0.9: start with --migrate to upgrade "
            "them");
  EXPECT_EQ(session.run("SELECT idem_micros()"), "1");
  EXPECT_EQ(refusal(database.url(), {.migrate = true}), "");
  EXPECT_NE(session.run("SELECT idem_micros()"), "1");
  EXPECT_EQ(refusal(database.url(), {.migrate = false}), "") << "and that was it";
}

TEST(MysqlOpen, S02_functions_of_a_newer_program_are_never_replaced) {
  const TestMysqlDatabase database;
  EXPECT_EQ(refusal(database.url()), "");
  MysqlSession session(database.url());
  session.run("INSERT INTO idem_schema_functions (checksum, program) VALUES ('other', '99.0.0')");
  expect_refused(refusal(database.url()), "its functions are of a newer program, idem 99.0.0");
}

TEST(MysqlOpen, S02_a_store_that_is_not_there_is_not_made_where_it_was_expected) {
  const TestMysqlDatabase database;
  MysqlOptions options;
  options.which.make = false;
  EXPECT_NE(refusal(database.url(), options), "");
  EXPECT_EQ(MysqlSession(database.url())
                .run("SELECT COUNT(*) FROM information_schema.tables"
                     " WHERE table_schema = DATABASE()"),
            "0");
}

TEST(MysqlOpen, S02_an_older_table_is_widened_with_its_records) {
  const TestMysqlDatabase database;
  Execute before;
  {
    const auto store = open_by_url(database.url());
    before = run(*store, 1);
  }
  MysqlSession session(database.url());
  session.run(
      "ALTER TABLE idem_slots MODIFY scope VARBINARY(255) NOT NULL DEFAULT '',"
      " MODIFY operation VARBINARY(255) NOT NULL DEFAULT ''; DELETE FROM idem_schema WHERE version "
      "> 3");
  EXPECT_EQ(
      refusal(database.url(), {.migrate = false}),
      "it has schema version 3, and this program needs 4: start with --migrate to upgrade it");
  EXPECT_EQ(refusal(database.url(), {.migrate = true}), "");
  const auto store = open_by_url(database.url());
  const auto kept = try_ask(*store, Find{key(1)});
  ASSERT_TRUE(kept && *kept) << "its checksum holds";
  EXPECT_EQ((*kept)->fence(), before.attempt.fence);
  Reserve verb = a_reserve_in(*store, 2);
  verb.operation.assign(limits::request_line_bytes_max, '/');
  const auto wide = ask_and_wait(*store, verb);
  ASSERT_TRUE(wide) << wide.error().detail;
  EXPECT_TRUE(is<Execute>(*wide));
}

TEST(MysqlOpen, S15_the_clock_follows_no_setting_of_a_session) {
  const TestMysqlDatabase database;
  EXPECT_EQ(refusal(database.url()), "");
  MysqlSession session(database.url());
  const std::string apart =
      "SELECT ABS(idem_now() - (SELECT UNIX_TIMESTAMP(SYSDATE(3)) * 1000)) < 5000";
  EXPECT_EQ(session.run(apart), "1");
  const std::int64_t before = std::stoll(session.run("SELECT idem_now()"));
  session.run("SET time_zone = '-05:30'; SET timestamp = 1");
  EXPECT_LT(std::stoll(session.run("SELECT idem_now()")) - before, 60'000);
  EXPECT_GE(std::stoll(session.run("SELECT idem_now()")), before);
  EXPECT_EQ(session.run("SELECT @@SESSION.time_zone"), "-05:30");
}

}  // namespace
}  // namespace idem::test
