#include "store/mysql/service_sql.hpp"

#include <gtest/gtest.h>

#include <limits>

/// The statements of services on MariaDB: their values, and which of them end a transaction.
namespace idem::test {
namespace {

std::string made(std::string_view sql, std::initializer_list<SqlValue> values) {
  const auto text = mysql::with_values(sql, std::span(values.begin(), values.size()));
  return text ? *text : "error: " + text.error();
}

TEST(MysqlServiceSql, S17_values_become_literals_without_quotes_of_their_own) {
  EXPECT_EQ(made("SELECT $1, $2", {"it's", SqlBytes{std::string("\0'", 2)}}),
            "SELECT _utf8mb4 x'69742773', _binary x'0027'");
  EXPECT_EQ(made("$1 $2 $3", {std::int64_t{7}, std::int64_t{-7}, std::monostate()}), "7 (-7) NULL");
  EXPECT_EQ(made("$1 $1", {true}), "TRUE TRUE");
  EXPECT_EQ(made("$2$1", {std::int64_t{1}, std::int64_t{2}}), "21");
  EXPECT_NE(made("$1", {std::numeric_limits<double>::infinity()}).find("error"), std::string::npos);
}

TEST(MysqlServiceSql, S17_names_within_texts_names_and_comments_are_none) {
  for (const std::string sql :
       {"SELECT '$1'", "SELECT \"$1\"", "SELECT `$1`", "SELECT 'it''s $1'", "SELECT 'a\\'$1'",
        "SELECT 1 -- $1", "SELECT 1 # $1", "SELECT 1 /* $1 */", "SELECT a$1", "SELECT '$1",
        "SELECT '\\", "SELECT /* $1"}) {
    EXPECT_EQ(made(sql, {}), sql);
  }
  // Two minus signs begin a comment only before a blank; a dash of a quote within a comment is
  // none.
  EXPECT_EQ(made("SELECT 1--$1", {std::int64_t{1}}), "SELECT 1--1");
  EXPECT_EQ(made("SELECT /* ' */ $1", {std::int64_t{1}}), "SELECT /* ' */ 1");
  // The server executes it.
  EXPECT_EQ(made("SELECT /*! $1 */", {std::int64_t{1}}), "SELECT /*! 1 */");
}

TEST(MysqlServiceSql, S17_a_value_without_a_name_and_a_name_without_a_value_are_wrong) {
  EXPECT_NE(made("SELECT $1", {}).find("error"), std::string::npos);
  EXPECT_NE(made("SELECT 1", {std::int64_t{1}}).find("error"), std::string::npos);
  EXPECT_NE(made("SELECT $99999999999999999999", {}).find("error"), std::string::npos);
}

TEST(MysqlServiceSql, S17_statements_that_end_a_transaction_are_known) {
  for (const std::string sql :
       {"COMMIT", "  commit", "/* x */ Rollback", "-- x\nBEGIN", "start transaction",
        "# x\nSAVEPOINT a", "CREATE TABLE t (id INT)", "alter table t add b int", "DROP TABLE t",
        "TRUNCATE t", ";COMMIT", "/*!50000 COMMIT */", "/*M! COMMIT */", "GRANT ALL ON a TO b",
        "LOCK TABLES a READ", "XA END 'a'"}) {
    EXPECT_NE(mysql::transaction_command(sql), "") << sql;
  }
  for (const std::string sql :
       {"SELECT 1", "INSERT INTO commits VALUES (1)", "CREATE TEMPORARY TABLE t (id INT)",
        "DROP TEMPORARY TABLE t", "LOAD DATA INFILE 'x' INTO TABLE t", "'COMMIT'", "(SELECT 1)",
        ""}) {
    EXPECT_EQ(mysql::transaction_command(sql), "") << sql;
  }
}

TEST(MysqlServiceSql, S17_what_may_run_another_statement_is_not_plain) {
  for (const std::string sql : {"SELECT 1", "/* x */ insert into t values (1)",
                                "WITH a AS (SELECT 1)"
                                " SELECT * FROM a",
                                "(SELECT 1)"}) {
    EXPECT_EQ(mysql::is_plain(sql), sql.front() != '(') << sql;
  }
  for (const std::string sql : {"CALL p()", "EXECUTE IMMEDIATE 'COMMIT'", "SET autocommit = 1",
                                "SET STATEMENT max_statement_time = 1 FOR COMMIT", "DO 1", ""}) {
    EXPECT_FALSE(mysql::is_plain(sql)) << sql;
  }
}

TEST(MysqlServiceSql, S17_a_second_statement_is_seen) {
  for (const std::string sql : {"SELECT 1; COMMIT", "SELECT ';'; x", "SELECT 1;/*! COMMIT */"}) {
    EXPECT_TRUE(mysql::has_several_statements(sql)) << sql;
  }
  for (const std::string sql : {"SELECT 1", "SELECT 1;", "SELECT ';x'", "SELECT 1; -- end",
                                "SELECT 1 /* ; */", "SELECT 1;;\n"}) {
    EXPECT_FALSE(mysql::has_several_statements(sql)) << sql;
  }
}

}  // namespace
}  // namespace idem::test
