#include "store_conformance/mysql/asking.hpp"

#include <idem/limits.hpp>

/// The procedures of the SQL face on a record with the longest names and texts, on MariaDB.
namespace idem::test {
namespace {

std::string arguments_of(const Execute& run) {
  return fmt::format("'{}', {}, '{}'", to_hex(run.id.bytes), run.attempt.fence,
                     to_hex(run.attempt.token.bytes));
}

TEST(MysqlFaceBounds, S17_a_record_of_the_longest_names_is_as_any) {
  const TestMysqlDatabase database;
  const auto store = open_by_url(database.url());
  MysqlSession session(database.url());
  const auto record = [&] { return ask_and_wait(*store, Find{key(1)}).value(); };
  Reserve verb = a_reserve_in(*store, 1);
  verb.scope.assign(limits::scope_bytes_max, 's');
  verb.operation.assign(limits::request_line_bytes_max, '/');
  verb.owner.assign(8'192, 'o');
  verb.quota = Quota{.active_keys = 10};
  const auto outcome = ask_and_wait(*store, verb);
  ASSERT_TRUE(outcome && is<Execute>(*outcome));
  const Execute attempt = std::get<Execute>(*outcome);
  const std::string longest(8'192, 't');
  session.run("START TRANSACTION");
  session.run(fmt::format("CALL idem_advance({}, '{}')", arguments_of(attempt), longest));
  session.run("COMMIT");
  EXPECT_EQ(record()->recovery_point, longest);
  session.run("START TRANSACTION");
  EXPECT_EQ(
      session.try_run(fmt::format("CALL idem_advance({}, '{}t')", arguments_of(attempt), longest)),
      31005U);
  session.run("START TRANSACTION");
  session.run(fmt::format("CALL idem_release({}, '{}', 'proven')", arguments_of(attempt), longest));
  session.run("COMMIT");
  EXPECT_EQ(record()->last_error_code, longest);
  verb.token = token(2);
  const auto again = ask_and_wait(*store, verb);
  ASSERT_TRUE(again && is<Execute>(*again)) << describe(*again);
  session.run("START TRANSACTION");
  session.run(fmt::format("CALL idem_complete({}, 201, '[]', 'paid', '{}')",
                          arguments_of(std::get<Execute>(*again)), longest));
  session.run("COMMIT");
  EXPECT_EQ(session.run(fmt::format("CALL idem_find('{}')", to_hex(key(1).bytes))), "completed");
  EXPECT_EQ(record()->operation, verb.operation);
  EXPECT_EQ(record()->scope, verb.scope);
}

}  // namespace
}  // namespace idem::test
