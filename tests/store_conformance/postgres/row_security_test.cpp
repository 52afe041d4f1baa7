#include "store/postgres/postgres_store.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>

#include <sstream>

/// Roles that may work in one scope only (schema/postgres/functions/72_restricted_roles.sql).
namespace idem::test {
namespace {

/// An attempt as the SQL face names it.
struct Named {
  std::string operation;
  std::string args;  ///< operation, fence, attempt
};

const std::string large_body(5'000, 'x');
const std::vector<std::string> owners_verbs = {"complete({}, 201)", "advance({}, 'charged')",
                                               "renew({})", "release({})", "mark_unknown({})"};

std::string call(const std::string& verb, const Named& attempt, const std::string& prefix = {}) {
  return fmt::format(fmt::runtime("idem." + prefix + verb), attempt.args);
}

class RowSecurity : public testing::Test {
 protected:
  RowSecurity() {
    auto store = open_postgres(database_.uri(), test_settings(), {});
    if (!store) std::abort();
    store_ = std::move(*store);
    owner_ = std::make_unique<Psql>(database_.uri());
  }

  static std::string reserving(const std::string& scope, const std::string& name,
                               const std::string& request = "amount=5") {
    return fmt::format("idem.reserve('{}', 'pay', '{}', '{}')", scope, name, request);
  }
  static std::string outcome(Psql& session, const std::string& scope, const std::string& name,
                             const std::string& request = "amount=5") {
    return session.run("SELECT outcome FROM " + reserving(scope, name, request));
  }
  static Named begin(Psql& session, const std::string& scope, const std::string& name) {
    const std::string row = session.run(
        "SELECT format('%s %s %s', operation, fence, attempt) FROM " + reserving(scope, name));
    std::istringstream words(row);
    std::string operation, fence, attempt;
    words >> operation >> fence >> attempt;
    return {operation, fmt::format("'{}', {}, '{}'", operation, fence, attempt)};
  }
  void restrict(const TestRole& role, const std::string& scope) {
    owner_->run(fmt::format("SELECT idem.restrict_to_scope('{}', {})", role.name(),
                            scope.empty() ? "NULL" : "'" + scope + "'"));
  }
  /// All that lies there of a scope, and what was decided about it.
  std::string traces_of(const std::string& scope) {
    return owner_->run(
        "SELECT string_agg(s::text || coalesce((SELECT string_agg(e::text, ';') FROM idem.evidence "
        "e WHERE e.id = s.id), ''), ';' ORDER BY s.id) FROM idem.slots s WHERE s.scope = '" +
        scope + "'");
  }
  std::string count(const std::string& what) { return owner_->run("SELECT count(*) FROM " + what); }
  static std::string refusal(const std::string& uri) {
    const auto store = open_postgres(uri, test_settings(), {});
    return store ? std::string() : store.error().detail;
  }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Psql> owner_;
};

/// With a literal scope, and with the session's.
class RowSecurityWithin : public RowSecurity, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Walls, RowSecurityWithin, testing::Values(true, false),
                         [](const auto& named) { return named.param ? "literal" : "setting"; });

TEST_P(RowSecurityWithin, S17_a_role_works_in_its_scope_as_anybody_does) {
  const TestRole role(database_.uri());
  restrict(role, GetParam() ? "shop" : "");
  owner_->run("CREATE TABLE payments (id text); GRANT ALL ON payments TO " + role.name());
  Psql service(role.uri());
  if (!GetParam()) service.run("SET idem.scope = 'shop'");
  service.run("SET synchronous_commit = off; SET lock_timeout = '3s'");

  for (const std::string size : {"5", "5000"}) {
    const std::string k = "of " + size;
    const Named attempt = begin(service, "shop", k);
    EXPECT_EQ(outcome(service, "shop", k), "in_progress");
    EXPECT_EQ(outcome(service, "shop", k, "amount=6"), "key_misuse");
    service.run("SELECT " + call("advance({}, 'charged')", attempt));
    service.run("SELECT " + call("renew({}, '5 min')", attempt));
    const std::string completing =
        "SELECT " +
        call("complete({}, 201, '[[\"X-A\", \"b\"]]', repeat('x', " + size + ")::bytea)", attempt);
    for (const std::string end : {"ROLLBACK", "COMMIT"}) {
      service.run("BEGIN; INSERT INTO payments VALUES ('p')");
      service.run(completing);
      EXPECT_EQ(service.run("SHOW synchronous_commit"), "on") << "in a careless session, too";
      service.run(end);
    }
    EXPECT_EQ(service.try_run(completing), "IDM02");
    EXPECT_EQ(outcome(service, "shop", k), "replay");
    EXPECT_EQ(service.run("SELECT length(response_body) FROM " + reserving("shop", k)), size);
    EXPECT_EQ(service.run("SELECT response_headers || to_jsonb(length(response_body)) FROM"
                          " idem.find(idem.record_id('shop', 'pay', '" +
                          k + "'))"),
              R"([["X-A", "b"], )" + size + "]");
  }
  EXPECT_EQ(count("payments"), "2");
  EXPECT_EQ(service.run("SHOW lock_timeout"), "3s");

  const Named given_back = begin(service, "shop", "given back");
  service.run("SELECT " + call("release({}, 'declined')", given_back));
  EXPECT_EQ(outcome(service, "shop", "given back"), "execute");
  const Named lost = begin(service, "shop", "lost");
  EXPECT_EQ(service.run("SELECT verdict FROM " + call("mark_unknown({})", lost, "try_")), "done");
  EXPECT_EQ(outcome(service, "shop", "lost"), "unknown");
  EXPECT_EQ(service.try_run("SELECT " + call("complete(NULL, {})", lost)), "42883");
  EXPECT_EQ(service.try_run("SELECT idem.complete(NULL, 1, NULL, 201)"), "IDM05");
}

TEST_P(RowSecurityWithin, V03_another_scopes_record_is_answered_as_none) {
  const Named theirs = begin(*owner_, "other", "k");
  const Named done = begin(*owner_, "other", "done");
  owner_->run("SELECT " + call("complete({}, 201, '[]', 'secret')", done));
  const Named nobodys{"00000000-0000-0000-0000-000000000001",
                      "'00000000-0000-0000-0000-000000000001', 1,"
                      " '00000000-0000-0000-0000-000000000002'"};
  const TestRole role(database_.uri());
  restrict(role, GetParam() ? "shop" : "");
  Psql service(role.uri());
  if (!GetParam()) service.run("SET idem.scope = 'shop'");
  const std::string before = traces_of("other");

  // Held by another session, as a missing record cannot be: it is not waited for all the same.
  Psql holder(database_.uri());
  holder.run("BEGIN; SELECT id FROM idem.slots FOR UPDATE");
  service.run("SET lock_timeout = '20ms'");  // A call that waited would say IDM04.
  for (const Named& attempt : {theirs, done, nobodys}) {
    for (const std::string& verb : owners_verbs) {
      EXPECT_EQ(service.try_run("SELECT " + call(verb, attempt)), "IDM01") << verb;
      EXPECT_EQ(service.run("SELECT format('%s|%s|%s', verdict, state, expires_at) FROM " +
                            call(verb, attempt, "try_")),
                "stale||");
    }
    EXPECT_EQ(service.run("SELECT count(*) FROM idem.find('" + attempt.operation + "')"), "0");
  }
  for (const std::string name : {"k", "done", "there is none"}) {
    EXPECT_EQ(service.try_run("SELECT " + reserving("other", name)), "IDM06");
    EXPECT_EQ(service.try_run("SELECT idem.record_id('other', 'pay', '" + name + "')"), "IDM06");
  }
  holder.run("COMMIT");
  EXPECT_EQ(traces_of("other"), before);
  EXPECT_EQ(count("idem.slots"), "2") << "and no second record, under whatever scope";
  // The same key in its own scope is another record.
  EXPECT_EQ(outcome(service, "shop", "k"), "execute");
  EXPECT_EQ(owner_->run("SELECT verdict FROM " + call(owners_verbs[0], theirs, "try_")), "done");
}

TEST_F(RowSecurity, V03_a_session_without_a_scope_has_none) {
  const Named attempt = begin(*owner_, "shop", "k");
  const TestRole role(database_.uri());
  restrict(role, "");
  owner_->run("GRANT SELECT ON idem.slots TO " + role.name());
  Psql service(role.uri());
  const auto expect_none = [&] {
    for (const std::string& verb : owners_verbs) {
      EXPECT_EQ(service.try_run("SELECT " + call(verb, attempt)), "IDM06") << verb;
      EXPECT_EQ(service.try_run("SELECT " + call(verb, attempt, "try_")), "IDM06") << verb;
    }
    EXPECT_EQ(service.try_run("SELECT " + reserving("shop", "k")), "IDM06");
    EXPECT_EQ(service.try_run("SELECT idem.find('" + attempt.operation + "')"), "IDM06");
    EXPECT_EQ(service.run("SELECT count(*) FROM idem.slots"), "0");
  };
  expect_none();
  // Behind a pooler in transaction mode: what one transaction said, the next one does not inherit.
  service.run("BEGIN; SET LOCAL idem.scope = 'shop'");
  EXPECT_EQ(outcome(service, "shop", "k"), "in_progress");
  EXPECT_EQ(service.run("SELECT count(*) FROM idem.slots"), "1");
  service.run("COMMIT");
  expect_none();
  EXPECT_EQ(count("idem.slots"), "1");
}

TEST_F(RowSecurity, V03_a_literal_restriction_is_not_lifted_by_a_sessions_settings) {
  const Named theirs = begin(*owner_, "other", "k");
  const TestRole role(database_.uri());
  const TestRole second(database_.uri());
  restrict(role, "shop");
  restrict(second, "other");
  owner_->run("GRANT SELECT ON idem.slots TO " + role.name());
  Psql service(role.uri());
  for (const std::string set :
       {"SET idem.scope = 'other'", "SET row_security = off", "SET search_path = pg_temp, idem",
        "CREATE TEMP TABLE restricted_roles AS SELECT current_user::regrole AS role, 'other' AS s",
        "RESET ROLE", "SET SESSION AUTHORIZATION DEFAULT"}) {
    service.run(set);
    EXPECT_EQ(service.try_run("SELECT " + reserving("other", "k")), "IDM06") << set;
    EXPECT_EQ(service.run("SELECT count(*) FROM idem.find('" + theirs.operation + "')"), "0");
    // With row_security off the rows that would be hidden are an error instead.
    const std::string sqlstate = service.try_run("SELECT 1 / count(*) FROM idem.slots");
    EXPECT_EQ(sqlstate, set == "SET row_security = off" ? "42501" : "22012");
    service.run("RESET row_security");
  }
  EXPECT_EQ(service.try_run("SET ROLE " + second.name()), "42501");
  EXPECT_EQ(service.try_run("SET ROLE postgres"), "42501");
  EXPECT_EQ(service.try_run("SELECT idem.lift_restriction('" + role.name() + "')"), "42501");
  EXPECT_EQ(service.try_run("SELECT idem.restrict_to_scope('" + role.name() + "')"), "42501");

  // Under two restrictions there is no scope, but each of them can be chosen.
  const TestRole both(database_.uri(), "IN ROLE " + role.name() + ", " + second.name());
  Psql pooled(both.uri());
  for (const std::string scope : {"shop", "other"}) {
    EXPECT_EQ(pooled.try_run("SELECT " + reserving(scope, "k")), "IDM06");
  }
  pooled.run("SET ROLE " + second.name());
  EXPECT_EQ(outcome(pooled, "other", "k"), "in_progress");
  EXPECT_EQ(pooled.try_run("SELECT " + reserving("shop", "k")), "IDM06");
}

class RowSecurityTables : public RowSecurity {
 protected:
  RowSecurityTables() {
    session_ = std::make_unique<Psql>(role_.uri());
    for (const std::string scope : {"shop", "other"}) {
      const Named attempt = begin(*owner_, scope, "k");
      owner_->run("SELECT " + call("complete({}, 201, '[]', '" + large_body + "')", attempt));
      const Named unknown = begin(*owner_, scope, "unknown");
      owner_->run("SELECT " + call("mark_unknown({})", unknown));
    }
    restrict(role_, "shop");
    // Days that are made later are closed as well.
    owner_->run("SELECT idem.make_day(DATE '2099-01-01')");
    owner_->run("INSERT INTO idem.answers VALUES ('2099-01-01 12:00Z', 1, 'head', 'body')");
  }
  void on_each_table(const std::function<void(const std::string&)>& see) {
    const int tables = std::stoi(count(all_tables));
    EXPECT_GT(tables, 11);
    for (int n = 0; n < tables; ++n) {
      see(owner_->run(fmt::format("SELECT oid::regclass FROM {} ORDER BY oid OFFSET {} LIMIT 1",
                                  all_tables, n)));
    }
  }

  static constexpr const char* all_tables =
      "(SELECT oid FROM pg_class WHERE relnamespace = 'idem'::regnamespace"
      " AND relkind IN ('r', 'p')) t";
  TestRole role_{database_.uri()};
  std::unique_ptr<Psql> session_;
};

TEST_F(RowSecurityTables, V03_nothing_is_to_be_had_past_the_functions) {
  int refused = 0;
  on_each_table([&](const std::string& table) {
    for (const std::string sql : {"SELECT FROM {}", "SELECT FROM {} FOR UPDATE", "DELETE FROM {}",
                                  "INSERT INTO {} DEFAULT VALUES", "TRUNCATE {}"}) {
      EXPECT_EQ(session_->try_run(fmt::format(fmt::runtime(sql), table)), "42501") << sql << table;
      ++refused;
    }
  });
  EXPECT_GE(refused, 60);
  for (const std::string sql :
       {"UPDATE idem.slots SET state = 'unknown'", "SELECT nextval('idem.fences')",
        "SELECT secret FROM idem.identity", "SELECT idem.list(NULL, NULL, NULL, NULL, NULL, 9)",
        "SELECT idem.find_many('{}')", "SELECT idem.census()", "SELECT idem.sweep(1)",
        "SELECT idem.reap(1)", "SELECT idem.drop_old_days()", "SELECT idem.live_operations()",
        "SELECT idem.scope_of_caller()", "SELECT idem.find_anywhere(gen_random_uuid())",
        "SELECT idem.record_id_anywhere('other', 'pay', 'k')",
        "SELECT idem.cache_bust(gen_random_uuid(), 1, 'x')",
        "SELECT idem.read_evidence(gen_random_uuid())",
        "SELECT idem.reserve_anywhere('shop', 'pay', 'n', 'x', '1 s', '1 s', '1 s', 'unknown', "
        "true,"
        " gen_random_uuid(), '')",
        "CREATE TABLE idem.mine (x int)"}) {
    EXPECT_EQ(session_->try_run(sql), "42501") << sql;
  }
}

TEST_F(RowSecurityTables, V03_rights_that_are_granted_later_reach_no_other_scope) {
  owner_->run("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA idem TO " + role_.name());
  owner_->run("GRANT ALL ON ALL SEQUENCES IN SCHEMA idem TO " + role_.name());
  const std::string before = traces_of("other");
  on_each_table([&](const std::string& table) {
    EXPECT_EQ(session_->run("SELECT count(*) FROM " + table), table == "idem.slots" ? "2" : "0")
        << table;
  });
  EXPECT_EQ(session_->run("SELECT string_agg(DISTINCT scope, ',') FROM idem.slots"), "shop");
  // A record that names another's answer, or lies under another's id: what the policies are for.
  for (const std::string& id :
       {owner_->run("SELECT id FROM idem.slots WHERE scope = 'other' LIMIT 1"),
        std::string("00000000-0000-0000-0000-000000000001")}) {
    owner_->run("CREATE TEMP TABLE IF NOT EXISTS model AS SELECT * FROM idem.slots LIMIT 1");
    for (const std::string scope : {"shop", "other"}) {
      EXPECT_EQ(session_->try_run(fmt::format(
                    "INSERT INTO idem.slots (id, scope, operation, generation,"
                    " fingerprint, state, fence, token, owner, locked_until, dispatched,"
                    " lease_policy, retention, tombstone, created_at, changed_at)"
                    " VALUES ('{0}', '{1}', 'pay', 1, '', 'completed', 1, '{0}', '',"
                    " now(), true, 'unknown', 1, 1, now(), now())",
                    id, scope)),
                "42501")
          << "whether it is there or not";
    }
  }
  EXPECT_EQ(session_->try_run("UPDATE idem.slots SET answer = 1"), "42501");
  EXPECT_EQ(session_->try_run("INSERT INTO idem.lease_due_batches VALUES (now(), '{}')"), "42501");
  EXPECT_EQ(traces_of("other"), before);
  EXPECT_EQ(count("idem.slots"), "4");
  // And the functions go the way that they went before.
  EXPECT_EQ(outcome(*session_, "shop", "k"), "replay");
  EXPECT_EQ(
      session_->run("SELECT length(response_body) FROM idem.find(idem.record_id('shop', 'pay',"
                    " 'k'))"),
      "5000");
  EXPECT_EQ(session_->try_run("SELECT " + reserving("other", "k")), "IDM06");
}

}  // namespace
}  // namespace idem::test
