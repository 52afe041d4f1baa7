#include "store/postgres/postgres_store.hpp"
#include "store_conformance/harness.hpp"
#include "support/external_data.hpp"

#include <idem/fingerprint.hpp>

#include <fmt/format.h>

#include <latch>
#include <set>
#include <thread>

/// The effect of restrictions on the store and on the owner of its schema: nothing may be hidden
/// from a gateway, since it runs each key whose record it does not see.
namespace idem::test {
namespace {

std::string owner_refusal(const std::string& uri, const PostgresOptions& options = {}) {
  const auto store = open_postgres(uri, test_settings(), options);
  return store ? std::string() : store.error().detail;
}

class RowSecurityOwner : public testing::Test {
 protected:
  RowSecurityOwner() : store_(open(database_.uri())), owner_(database_.uri()) {}

  static std::unique_ptr<Store> open(const std::string& uri) {
    auto store = open_postgres(uri, test_settings(), {});
    if (!store) {
      ADD_FAILURE() << store.error().detail;
      std::abort();
    }
    return std::move(*store);
  }
  static auto reserve(Store& store, Reserve verb) {
    verb.generation = store.identity().generation;
    return ask_and_wait(store, std::move(verb));
  }
  static std::string restricting(const TestRole& role, const std::string& scope) {
    return fmt::format("SELECT idem.restrict_to_scope('{}', '{}')", role.name(), scope);
  }
  /// All rights that a gateway or a service used to be granted.
  void grant_all(const TestRole& role) {
    owner_.run(
        fmt::format("GRANT USAGE ON SCHEMA idem TO {0}; GRANT ALL ON ALL TABLES IN SCHEMA "
                    "idem TO {0}; GRANT ALL ON ALL SEQUENCES IN SCHEMA idem TO {0}",
                    role.name()));
  }
  std::string with_row_security() {
    return owner_.run(
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'idem'::regnamespace"
        " AND relrowsecurity AND relname <> 'journal'");
  }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  Psql owner_;
};

constexpr const char* hers = "SELECT outcome FROM idem.reserve('shop', 'pay', 'k', 'amount=5')";

TEST_F(RowSecurityOwner, S17_a_store_as_whom_policies_bind_is_refused_and_a_running_one_sees_all) {
  const TestRole gateway(database_.uri());
  grant_all(gateway);
  const auto running = open(gateway.uri());
  ASSERT_TRUE(is<Execute>(reserve(*running, a_reserve(1)).value()));
  ASSERT_TRUE(ask_and_wait(*running, Find{key(1)}).has_value()) << "over a connection of its own";
  const TestRole service(database_.uri());
  owner_.run(restricting(service, "shop"));

  // It runs on over its connections, and whose role is not restricted is kept from nothing.
  EXPECT_EQ(ask_and_wait(*running, Find{key(1)}).value()->state, State::in_progress);
  EXPECT_TRUE(is<InProgress>(reserve(*running, a_reserve(1, 2)).value()));
  EXPECT_TRUE(is<Execute>(reserve(*running, a_reserve(2)).value()));
  EXPECT_EQ(Psql(gateway.uri()).run(hers), "execute") << "nor is a service as it was until now";

  for (const TestRole* role : {&gateway, &service}) {
    const std::string complaint = owner_refusal(role->uri());
    EXPECT_TRUE(
        complaint.starts_with("row-level security applies to the role '" + role->name() + "': "))
        << complaint;
    EXPECT_NE(complaint.find("connect as 'postgres'"), complaint.npos) << complaint;
    EXPECT_NE(complaint.find("BYPASSRLS"), complaint.npos) << complaint;
  }
  EXPECT_EQ(owner_refusal(database_.uri()), "");

  // A connection that it makes anew is a start for it.
  owner_.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" +
             gateway.name() + "'");
  StoreError last;
  for (int round = 0; round < 2; ++round) {
    const auto reply = reserve(*running, a_reserve(3 + round));
    ASSERT_FALSE(reply.has_value());
    last = reply.error();
  }
  EXPECT_EQ(last.code, StoreError::Code::unavailable);
  EXPECT_NE(last.detail.find("row-level security applies"), last.detail.npos) << last.detail;
  EXPECT_EQ(owner_.run("SELECT count(*) FROM idem.slots"), "3");

  owner_.run("ALTER ROLE " + gateway.name() + " BYPASSRLS");
  EXPECT_EQ(owner_refusal(gateway.uri()), "");
}

TEST_F(RowSecurityOwner, S17_a_running_store_whose_own_role_is_restricted_runs_nothing) {
  const TestRole gateway(database_.uri());
  grant_all(gateway);
  const auto running = open(gateway.uri());
  ASSERT_TRUE(is<Execute>(reserve(*running, a_reserve(1)).value()));
  owner_.run(restricting(gateway, "tenant-1"));
  for (const int number : {1, 2}) {
    EXPECT_FALSE(reserve(*running, a_reserve(number, 2)).has_value());
    EXPECT_FALSE(ask_and_wait(*running, Find{key(number)}).has_value());
  }
  EXPECT_EQ(owner_.run("SELECT count(*) FROM idem.slots"), "1");
}

TEST_F(RowSecurityOwner, S17_gateway_and_restricted_service_run_each_key_once) {
  const TestRole service(database_.uri());
  owner_.run(restricting(service, "shop"));
  constexpr int keys = 200;
  std::atomic<int> executed[keys] = {};
  std::latch both(2);
  std::thread theirs([&] {
    Psql session(service.uri());
    both.arrive_and_wait();
    for (int n = 0; n < keys; ++n) {
      const std::string complaint = session.run(fmt::format(
          "SELECT CASE WHEN outcome <> 'execute' THEN outcome ELSE (idem.complete("
          "operation, fence, attempt, 201, '[]', repeat('x', 5000)::bytea)).verdict::text"
          " END FROM idem.reserve('shop', 'pay', 'k{}', 'x')",
          n));
      if (complaint == "done") ++executed[n];
    }
  });
  both.arrive_and_wait();
  for (int n = 0; n < keys; ++n) {
    Reserve verb = a_reserve(1);
    verb.scope = "shop";
    verb.id = record_id(store_->identity().secret, "shop", "pay", fmt::format("k{}", n));
    const auto outcome = reserve(*store_, verb);
    EXPECT_TRUE(outcome.has_value());
    if (outcome && is<Execute>(*outcome)) {
      ++executed[n];
      const auto reply = ask_and_wait(*store_, a_complete(std::get<Execute>(*outcome)));
      EXPECT_EQ(reply.value().verdict, Verdict::done);
    }
  }
  theirs.join();
  for (const auto& times : executed) EXPECT_EQ(times, 1);
  // The gateway replays and lists the records that the service stored.
  Psql(service.uri())
      .run(
          "SELECT idem.complete(operation, fence, attempt, 202) FROM"
          " idem.reserve('shop', 'pay', 'last', 'x')");
  const auto id = record_id(store_->identity().secret, "shop", "pay", "last");
  EXPECT_EQ(ask_and_wait(*store_, Find{id}).value()->response->status, 202);
}

TEST(RowSecuritySmallOwner, S17_an_owner_that_is_no_superuser_restricts_and_its_gateway_works) {
  const TestDatabase database;
  Psql superuser(database.uri());
  const TestRole owner(database.uri());
  const TestRole service(database.uri());
  superuser.run("DO $$ BEGIN EXECUTE 'GRANT CREATE ON DATABASE ' || current_database() || ' TO " +
                owner.name() + "'; END $$");
  ASSERT_EQ(owner_refusal(owner.uri()), "");
  Psql session(owner.uri());
  session.run(fmt::format("SELECT idem.restrict_to_scope('{}', 'shop')", service.name()));
  EXPECT_EQ(owner_refusal(owner.uri()), "");
  EXPECT_EQ(Psql(service.uri()).run(hers), "execute");
  EXPECT_EQ(session.run("SELECT count(*) FROM idem.slots"), "1");
  superuser.run("ALTER TABLE idem.slots FORCE ROW LEVEL SECURITY");
  EXPECT_TRUE(owner_refusal(owner.uri()).starts_with("row-level security applies to the role '"));
  EXPECT_EQ(session.try_run(hers), "") << "but nothing is hidden even then";
}

TEST_F(RowSecurityOwner, with_the_last_restriction_the_tables_are_as_before) {
  EXPECT_EQ(with_row_security(), "0") << "an option";
  const TestRole one(database_.uri());
  const TestRole two(database_.uri());
  owner_.run(restricting(one, "shop"));
  owner_.run(restricting(two, "it''s"));
  owner_.run(restricting(one, "store"));  // Another one in place of the first.
  Psql service(one.uri());
  EXPECT_EQ(service.try_run(hers), "IDM06");
  EXPECT_EQ(Psql(two.uri()).run("SELECT outcome FROM idem.reserve('it''s', 'pay', 'k', 'x')"),
            "execute");
  owner_.run("SELECT idem.lift_restriction('" + one.name() + "')");
  EXPECT_EQ(service.try_run(hers), "42501");
  EXPECT_NE(with_row_security(), "0");
  owner_.run("SELECT idem.lift_restriction('" + two.name() + "')");
  EXPECT_EQ(with_row_security(), "0");
  EXPECT_EQ(owner_.run("SELECT count(*) FROM pg_policy"), "0");
  for (const TestRole* role : {&one, &two}) {
    EXPECT_EQ(owner_.run("SELECT count(*) FROM pg_shdepend WHERE refobjid = '" + role->name() +
                         "'::regrole"),
              "0")
        << "no right is left";
  }
  grant_all(one);
  EXPECT_EQ(owner_refusal(one.uri()), "") << "with rights, a role as any other";
  EXPECT_EQ(service.run(hers), "execute");
}

TEST_F(RowSecurityOwner, a_role_that_bypasses_row_security_is_not_restricted) {
  const TestRole group(database_.uri());
  const TestRole member(database_.uri(), "NOINHERIT IN ROLE " + group.name());
  const TestRole bypassing(database_.uri(), "BYPASSRLS");
  const TestRole plain(database_.uri());
  grant_all(group);
  for (const std::string& name : {std::string("postgres"), member.name(), bypassing.name()}) {
    EXPECT_EQ(owner_.try_run("SELECT idem.restrict_to_scope('" + name + "', 'shop')"), "IDM05");
  }
  EXPECT_EQ(owner_.try_run("SELECT idem.restrict_to_scope('nobody of that name', 's')"), "42704");
  EXPECT_EQ(owner_.try_run(restricting(plain, "")), "IDM05");
  owner_.run("GRANT SELECT ON idem.answers TO PUBLIC");
  EXPECT_EQ(owner_.try_run(restricting(plain, "shop")), "IDM05");
  owner_.run("REVOKE SELECT ON idem.answers FROM PUBLIC");
  EXPECT_EQ(with_row_security(), "0") << "refused as a whole";
  // Rights that are its own are revoked.
  owner_.run("REVOKE " + group.name() + " FROM " + member.name());
  grant_all(member);
  owner_.run(restricting(member, "shop"));
  EXPECT_EQ(Psql(member.uri()).try_run("DELETE FROM idem.slots"), "42501");
}

TEST_F(RowSecurityOwner, functions_with_the_owners_rights_are_for_restricted_roles_only) {
  const TestRole plain(database_.uri());
  owner_.run("GRANT USAGE ON SCHEMA idem TO " + plain.name());
  EXPECT_EQ(
      owner_.run("SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc"
                 " WHERE pronamespace = 'idem'::regnamespace AND prosecdef"),
      "enqueue_in_scope,find_in_scope,record_id_in_scope,reserve_in_scope,rows_in_clear_in_scope,"
      "try_owner_in_scope");
  EXPECT_EQ(owner_.run("SELECT count(*) FROM pg_proc WHERE prosecdef AND pronamespace ="
                       " 'idem'::regnamespace AND (has_function_privilege('" +
                       plain.name() +
                       "', oid, 'EXECUTE') OR proconfig IS DISTINCT FROM"
                       " ARRAY['search_path=pg_catalog, pg_temp'])"),
            "0");
  EXPECT_EQ(Psql(plain.uri()).try_run(hers), "42501");
}

TEST_F(RowSecurityOwner, an_open_transaction_delays_a_restriction_for_a_moment_and_no_gateway) {
  const TestRole service(database_.uri());
  Psql application(database_.uri());
  application.run("BEGIN");
  EXPECT_EQ(application.run(hers), "execute");
  owner_.run("SET statement_timeout = '3s'");
  EXPECT_EQ(owner_.try_run(restricting(service, "shop")), "55P03");
  EXPECT_EQ(with_row_security(), "0");
  EXPECT_TRUE(is<Execute>(reserve(*store_, a_reserve(1)).value()));
  application.run("COMMIT");
  owner_.run(restricting(service, "shop"));
  EXPECT_EQ(Psql(service.uri()).run(hers), "in_progress");
}

TEST_F(RowSecurityOwner, S17_an_upgrade_restricts_restricted_roles_again) {
  const TestRole service(database_.uri());
  owner_.run(restricting(service, "shop"));
  EXPECT_EQ(Psql(service.uri()).run(hers), "execute");
  // As it would be behind tables and functions that are new.
  owner_.run(
      "CREATE TABLE idem.added (a int); GRANT SELECT ON idem.added TO PUBLIC;"
      " REVOKE SELECT ON idem.added FROM PUBLIC");
  owner_.run(
      fmt::format("REVOKE ALL ON FUNCTION idem.record_id_in_scope(text, text, text) FROM {};"
                  " UPDATE idem.schema_functions SET checksum = 'older', program = '0.0.1'",
                  service.name()));
  EXPECT_EQ(Psql(service.uri()).try_run("SELECT idem.record_id('shop', 'pay', 'k')"), "42501");
  // It still sees its own scope, and no open transaction blocks it.
  owner_.run(fmt::format("GRANT SELECT ON idem.slots TO {}", service.name()));
  Psql application(database_.uri());
  application.run("BEGIN; SELECT count(*) FROM idem.slots");
  ASSERT_EQ(owner_refusal(database_.uri(), {.migrate = true}), "");
  application.run("COMMIT");
  EXPECT_EQ(Psql(service.uri()).run("SELECT count(*) FROM idem.slots"), "1");
  EXPECT_EQ(Psql(service.uri()).run("SELECT idem.record_id('shop', 'pay', 'k') IS NOT NULL"), "t");
  EXPECT_EQ(Psql(service.uri()).run(hers), "in_progress");
  EXPECT_EQ(owner_.run("SELECT relrowsecurity FROM pg_class WHERE oid = 'idem.added'::regclass"),
            "t");
}

}  // namespace
}  // namespace idem::test
