#include "store/internal_sql.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store_conformance/transacting.hpp"

#include <fmt/format.h>

/// A role that may make functions and operators in some schema must not have them run by the
/// gateway, by a service, or by the owner of the schema. What has no schema before its name is
/// looked for on the session's path, and the best match among all of it is called.
namespace idem::test {
namespace {

/// A function and an operator of every name and signature that the system has, and a domain over
/// each of its types, in a schema that comes first on the path of `role`. Each leaves a trace that
/// no rollback removes, and fails.
constexpr const char* shadows = R"(
  CREATE SCHEMA evil;
  CREATE SEQUENCE evil.calls;
  GRANT USAGE ON SCHEMA evil TO PUBLIC;
  GRANT ALL ON SEQUENCE evil.calls TO PUBLIC;
  SET search_path = pg_catalog;
  DO $$
  DECLARE
    p record;
    body text := ' LANGUAGE plpgsql AS $f$ BEGIN PERFORM pg_catalog.nextval(''evil.calls'');'
                 ' RAISE EXCEPTION ''the shadow of %''; END $f$';
  BEGIN
    FOR p IN SELECT f.proname, pg_get_function_identity_arguments(f.oid) AS args,
                    pg_get_function_result(f.oid) AS result
      FROM pg_proc f WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.prokind = 'f'
        AND f.provariadic = 0 AND NOT f.proretset
        AND NOT EXISTS (SELECT FROM unnest(f.proargtypes) a
          WHERE a IN ('internal'::regtype, 'cstring'::regtype, '"any"'::regtype))
        AND f.prorettype NOT IN ('internal'::regtype, 'cstring'::regtype, 'trigger'::regtype,
                                 'event_trigger'::regtype)
    LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s', p.proname, p.args, p.result)
          || replace(body, '%', p.proname);
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
    FOR p IN SELECT o.oprname, o.oprleft, o.oprright, o.oprresult, o.oid FROM pg_operator o
      WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprleft <> 0
    LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION evil.op%s(%s, %s) RETURNS %s', p.oid,
                       format_type(p.oprleft, NULL), format_type(p.oprright, NULL),
                       format_type(p.oprresult, NULL)) || replace(body, '%', 'an operator');
        EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s,'
                       ' FUNCTION = evil.op%s)', p.oprname, format_type(p.oprleft, NULL),
                       format_type(p.oprright, NULL), p.oid);
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
    FOR p IN SELECT t.typname FROM pg_type t
      WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype = 'b' AND t.typelem = 0
    LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION evil.check_of(value pg_catalog.%I) RETURNS bool', p.typname)
          || replace(body, '%', 'a type');
        EXECUTE format('CREATE DOMAIN evil.%I AS pg_catalog.%I CHECK (evil.check_of(value))',
                       p.typname, p.typname);
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END $$;
  RESET search_path)";

class SqlAttack : public testing::Test {
 protected:
  SqlAttack() : owner_(database_.uri()) { (void)open(database_.uri()); }

  static std::unique_ptr<Store> open(const std::string& uri) {
    auto store = open_postgres(uri, test_settings(), {});
    if (!store) {
      ADD_FAILURE() << store.error().detail;
      std::abort();
    }
    return std::move(*store);
  }
  void grant_all(const TestRole& role) {
    owner_.run(
        fmt::format("GRANT USAGE ON SCHEMA idem TO {0}; GRANT ALL ON ALL TABLES IN SCHEMA "
                    "idem TO {0}; GRANT ALL ON ALL SEQUENCES IN SCHEMA idem TO {0}",
                    role.name()));
  }
  /// `role` looks into `evil` before it looks anywhere else.
  void mislead(const TestRole& role) {
    owner_.run("ALTER ROLE " + role.name() + " SET search_path = evil, pg_catalog");
  }
  std::string calls() { return owner_.run("SELECT is_called FROM evil.calls"); }

  TestDatabase database_;
  Psql owner_;
};

template <class Verb>
auto must(Store& store, Verb verb) {
  const auto reply = ask_and_wait(store, std::move(verb));
  EXPECT_TRUE(reply.has_value()) << reply.error().detail;
  return reply;
}

/// Every verb of the port, on records in every state.
void use_every_verb(Store& store) {
  const auto generation = store.identity().generation;
  const auto reserve = [&](int number, auto change) {
    Reserve verb = a_reserve(number);
    verb.generation = generation;
    change(verb);
    const auto outcome = must(store, verb);
    return outcome && is<Execute>(*outcome) ? std::get<Execute>(*outcome) : Execute{};
  };
  const auto as_it_is = [](Reserve&) {};
  const auto counted = [](Reserve& verb) {
    verb.quota = Quota{std::chrono::microseconds(1), 100, 100, 1 << 20};
  };
  const Execute completed = reserve(1, as_it_is);
  must(store, Dispatched{completed.id, completed.attempt});
  must(store, Renew{completed.id, completed.attempt, lease});
  must(store, Advance{completed.id, completed.attempt, "charged"});
  must(store, a_complete(completed, answer(500, std::string(5'000, 'x'))));
  must(store, a_complete(reserve(2, counted)));
  reserve(2, as_it_is);
  const Execute released = reserve(3, counted);
  must(store, a_release(released));
  reserve(3, as_it_is);
  const Execute unknown = reserve(4, as_it_is);
  must(store, a_mark_unknown(unknown));
  must(store, Reschedule{unknown.id, unknown.attempt.fence, 0, 1s, "test", "none", "", {}});
  must(store, a_resolve(4, Resolve::As::completed, unknown.attempt.fence));
  must(store, CacheBust{completed.id, completed.attempt.fence, "because"});
  reserve(5, [&](Reserve& verb) { verb.also.push_back({key(1)}); });
  Accept accept = an_accept(6);
  accept.as.generation = generation;
  must(store, accept);
  must(store, List{State::pending});  // With a stored request in it.
  must(store, Claim{token(9), "claims", lease});
  reserve(7, [](Reserve& verb) { verb.lease = 1ms; });
  must(store, Sweep{10});
  must(store, Reap{10});
  must(store, Count{});
  must(store, ReadEvidence{key(4)});
  must(store, Find{key(1)});
  must(store, List{});
  for (const State state : {State::pending, State::in_progress, State::completed,
                            State::failed_retryable, State::unknown, State::expired}) {
    must(store, List{state, "tenant-1", "pay", StoreTime(Millis(0)), key(0)});
  }
  for (const std::string name : {"audit", "jobs"}) {
    must(store, AppendLine{name, 0, "first"});
    must(store, AppendLine{name, 0, "behind"});
    must(store, ReadLines{name});
  }
  must(store, ListJournals{"jobs"});
  must(store, DropJournal{"jobs", 1});
  must(store, AdoptRoutes{{{{}, "/v1", "pay", {}}}});
}

void use_transactions(Store& store) {
  auto& transactions = *store.transactions();
  Reserve fresh = a_reserve(21);
  fresh.generation = store.identity().generation;
  const auto end = transactions.run({fresh, {}, {}, pays("p21")});
  EXPECT_EQ(end.how, TransactionEnd::How::committed) << end.why;
  EXPECT_EQ(transactions.run({fresh, {}, {}, pays("p21")}).how, TransactionEnd::How::not_run);
  Reserve two_names = a_reserve(22);
  two_names.generation = fresh.generation;
  two_names.also.push_back({key(23)});
  EXPECT_EQ(transactions.run({two_names, {}, {}, pays("p22")}).how, TransactionEnd::How::committed);
  Reserve reserve = a_reserve(24);
  reserve.generation = fresh.generation;
  const auto granted = must(store, reserve);
  const auto run = std::get<Execute>(*granted);
  const auto advanced =
      transactions.run(under(run, [](Transaction&, const RecordId& id, const Attempt& attempt) {
        return std::optional<StoreCall>(Advance{id, attempt, "booked"});
      }));
  EXPECT_EQ(advanced.how, TransactionEnd::How::committed) << advanced.why;
}

/// The store's own work on its tables beside the records.
void use_own_statements(Store& store) {
  auto& transactions = *store.transactions();
  const std::string id(32, 'a');
  const std::string token(32, 'b');
  const auto use = [&](InternalStatement which, std::initializer_list<SqlValue> values) {
    const auto rows = InternalSql::run(transactions, which, values);
    EXPECT_TRUE(rows.has_value()) << static_cast<int>(which) << ": " << rows.error();
    return rows ? *rows : SqlRows();
  };
  const auto n = [](std::int64_t number) { return SqlValue(number); };
  const SqlValue any;
  using enum InternalStatement;
  use(put_message, {id, id, "d", "type", "about", "paid", "{}", "application/json"});
  use(find_message, {id});
  use(list_messages, {"waiting", "d", n(0), n(10)});
  use(messages_of_record, {id, "waiting", "d", n(0), n(10)});
  use(count_messages, {});
  use(hasten_message, {id});
  const SqlRows claimed = use(claim_messages, {"d", n(10), n(1000), n(1000), n(1)});
  ASSERT_EQ(claimed.size(), 1U);
  use(note_sending, {claimed[0][0], claimed[0][10]});
  use(note_delivery, {claimed[0][0], claimed[0][10], "dead", "", "why", n(0), n(0)});
  use(try_redrive, {"d", any, any, n(10), n(0), n(1), "why"});
  use(try_discard, {"d", any, any, n(10), "why"});
  use(redrive, {"d", any, any, n(10), n(0), n(1), "why"});
  use(discard, {"d", any, any, n(10), "why"});
  use(reap_messages, {n(10), n(0)});
  use(open_flow, {id, "pay", SqlBytes{"in"}, n(0), token, n(1), "first", ""});
  use(note_call, {id, token, "first"});
  use(find_point, {id});
  use(due_flows, {"pay", n(10)});
  use(rest_flow, {id, token, n(0), n(1)});
  use(pass_phase, {id, "started", "first", n(0), n(1), "second"});
  use(postpone_flow, {id, n(0)});
  use(close_flow, {id, token});
}

TEST_F(SqlAttack, V03_nothing_that_the_store_sends_is_looked_for_on_the_path) {
  const TestRole gateway(database_.uri());
  grant_all(gateway);
  owner_.run("ALTER ROLE " + gateway.name() + " BYPASSRLS");  // For the journals.
  owner_.run(shadows);
  EXPECT_NE(owner_.run("SELECT count(*) > 1000 FROM pg_proc WHERE pronamespace = "
                       "'evil'::regnamespace"),
            "f");
  mislead(gateway);
  EXPECT_EQ(Psql(gateway.uri()).try_run("SELECT abs(-1)"), "P0001") << "the shadows are met";
  for (const std::string type : {"text", "uuid", "bytea", "int8", "timestamptz"}) {
    EXPECT_EQ(Psql(gateway.uri()).try_run("SELECT NULL::" + type), "P0001") << type;
  }
  owner_.run("ALTER SEQUENCE evil.calls RESTART");
  owner_.run(
      "CREATE TABLE payments (id text, amount int); ALTER TABLE payments SET SCHEMA evil;"
      " GRANT ALL ON evil.payments TO PUBLIC");
  const auto store = open(gateway.uri());
  use_transactions(*store);
  use_own_statements(*store);
  use_every_verb(*store);  // Which ends with another generation.
  EXPECT_EQ(calls(), "f");
}

TEST_F(SqlAttack, V03_nor_the_faces_functions_for_a_service_and_a_restricted_role) {
  const TestRole service(database_.uri());
  const TestRole restricted(database_.uri());
  grant_all(service);
  owner_.run(shadows);
  mislead(service);
  owner_.run("SELECT idem.restrict_to_scope('" + restricted.name() + "', 'shop')");
  mislead(restricted);
  for (const TestRole* role : {&service, &restricted}) {
    Psql session(role->uri());
    const auto attempt = [&](const std::string& name) {
      return session.run(
          "SELECT pg_catalog.format('%L, %s, %L', operation, fence, attempt) FROM"
          " idem.reserve('shop', 'pay', '" +
          name + role->name() + "', 'x')");
    };
    const std::string paid = attempt("a");
    session.run("SELECT idem.advance(" + paid + ", 'half')");
    session.run("SELECT idem.renew(" + paid + ")");
    session.run("SELECT idem.enqueue(" + paid + ", 'd', 't', '{}', 'a', 'b')");
    session.run("SELECT idem.complete(" + paid + ", 201, '[[\"X-A\", \"b\"]]', 'paid', 'ref')");
    session.run("SELECT idem.find(" + paid.substr(0, paid.find(',')) + ")");
    session.run("SELECT idem.headers(response_head) FROM idem.reserve('shop', 'pay', 'a" +
                role->name() + "', 'x')");
    session.run("SELECT idem.release(" + attempt("b") + ")");
    session.run("SELECT idem.mark_unknown(" + attempt("c") + ", 'lost', '1 s')");
    session.run("SELECT idem.record_id('shop', 'pay', 'k')");
    EXPECT_EQ(session.try_run("SELECT idem.try_enqueue(" + paid + ", 'd', 't', '{}')"), "");
  }
  EXPECT_EQ(calls(), "f");
}

// As it was found: with rights on nothing but a schema that is on everybody's path.
TEST_F(SqlAttack, V03_a_better_match_in_public_is_not_called) {
  const TestRole attacker(database_.uri());
  owner_.run("GRANT CREATE ON SCHEMA public TO " + attacker.name() +
             "; CREATE TABLE public.loot (who text); GRANT INSERT ON public.loot TO PUBLIC");
  Psql theirs(attacker.uri());
  for (const std::string type : {"uuid[]", "text[]", "bytea[]"}) {
    theirs.run("CREATE FUNCTION public.cardinality(" + type +
               ") RETURNS int LANGUAGE sql AS $$INSERT INTO public.loot VALUES (current_user)"
               " RETURNING 0$$");
  }
  for (const std::string pair : {"oid, regnamespace", "oid, regclass", "regclass, regclass",
                                 "text, varchar", "text, name", "smallint, bigint"}) {
    const std::string name = "same_" + std::to_string(std::hash<std::string>()(pair));
    theirs.run("CREATE FUNCTION public." + name + "(" + pair +
               ") RETURNS bool LANGUAGE sql AS $$INSERT INTO public.loot VALUES (current_user)"
               " RETURNING true$$");
    const auto comma = pair.find(',');
    (void)theirs.try_run("CREATE OPERATOR public.= (LEFTARG = " + pair.substr(0, comma) +
                         ", RIGHTARG = " + pair.substr(comma + 1) + ", FUNCTION = public." + name +
                         ")");
  }
  owner_.run("CREATE TABLE payments (id text, amount int)");
  {
    const auto store = open(database_.uri());
    use_transactions(*store);
    use_own_statements(*store);
    use_every_verb(*store);  // Which ends with another generation.
  }
  const TestRole service(database_.uri());
  owner_.run("SELECT idem.restrict_to_scope('" + service.name() + "', 'shop')");
  owner_.run("SELECT idem.lift_restriction('" + service.name() + "')");
  EXPECT_EQ(owner_.run("SELECT count(*) FROM public.loot"), "0");
}

TEST_F(SqlAttack, V03_every_function_is_bound_to_the_systems_path) {
  EXPECT_EQ(owner_.run("SELECT coalesce(string_agg(p.proname, ', '), '') FROM pg_proc p"
                       " WHERE p.pronamespace = 'idem'::regnamespace AND p.prosqlbody IS NULL"
                       " AND NOT coalesce(p.proconfig, '{}')"
                       " @> ARRAY['search_path=pg_catalog, pg_temp']"),
            "");
}

// ---- the restriction and what a role may make of its own ----

class SqlRestriction : public SqlAttack {
 protected:
  SqlRestriction() : role_(database_.uri()) {
    owner_.run("SELECT idem.restrict_to_scope('" + role_.name() + "', 'acme')");
    owner_.run(
        "SELECT idem.complete(operation, fence, attempt, 201, '[]', 'secret') FROM"
        " idem.reserve('ACME', 'pay', 'k', 'x')");
    theirs_ = std::make_unique<Psql>(role_.uri());
    theirs_->run(
        "CREATE COLLATION pg_temp.ci (provider = icu, locale = 'und-u-ks-level2',"
        " deterministic = false);"
        " CREATE DOMAIN pg_temp.name_of_scope AS text COLLATE pg_temp.ci;"
        " CREATE TYPE pg_temp.boxed AS (it text);"
        " CREATE FUNCTION pg_temp.unboxed(pg_temp.boxed) RETURNS text LANGUAGE sql AS"
        " 'SELECT ($1).it';"
        " CREATE CAST (pg_temp.boxed AS text) WITH FUNCTION pg_temp.unboxed(pg_temp.boxed)"
        " AS IMPLICIT;"
        " CREATE VIEW pg_temp.shown AS SELECT 'ACME'::text COLLATE pg_temp.ci AS scope");
  }
  const std::vector<std::string> names_of_another_ = {
      "'ACME'",
      "'ACME' COLLATE pg_temp.ci",
      "'ACME'::pg_temp.name_of_scope",
      "ROW('ACME')::pg_temp.boxed",
      "(SELECT scope FROM pg_temp.shown)",
      "'acme '",
      "'Acme' COLLATE pg_temp.ci",
      "'acm\xc3\xa9' COLLATE pg_temp.ci",
  };
  TestRole role_;
  std::unique_ptr<Psql> theirs_;
};

TEST_F(SqlRestriction, V03_another_scope_is_closed_under_whatever_collation_type_or_view) {
  ASSERT_EQ(theirs_->run("SELECT 'ACME' = 'acme' COLLATE pg_temp.ci"), "t");
  for (const std::string& scope : names_of_another_) {
    for (const std::string function : {"record_id", "record_id_in_scope"}) {
      EXPECT_EQ(theirs_->try_run("SELECT idem." + function + "(" + scope + ", 'pay', 'k')"),
                "IDM06")
          << function << scope;
    }
    EXPECT_EQ(theirs_->try_run("SELECT idem.reserve(" + scope + ", 'pay', 'k', 'x')"), "IDM06")
        << scope;
    // The collation may come with any other argument, too.
    EXPECT_EQ(theirs_->try_run("SELECT idem.reserve(" + scope +
                               ", 'pay' COLLATE pg_temp.ci, 'k' COLLATE pg_temp.ci, 'x')"),
              "IDM06");
    EXPECT_EQ(theirs_->try_run("SELECT idem.reserve_in_scope(" + scope +
                               ", 'pay', 'k' COLLATE pg_temp.ci, 'x', '1 s', '1 s', '1 s',"
                               " 'unknown', true, gen_random_uuid(), '')"),
              "IDM06");
    EXPECT_EQ(theirs_->try_run("SELECT idem.must_be_own_scope(" + scope + ")"), "42501");
  }
  EXPECT_EQ(theirs_->run("SELECT outcome FROM idem.reserve('acme' COLLATE pg_temp.ci, 'pay', 'k',"
                         " 'x')"),
            "execute")
      << "its own is open, and another one's answer is not in it";
}

TEST_F(SqlRestriction, V03_another_scopes_record_is_none_under_whatever_collation) {
  const std::string id = owner_.run("SELECT quote_literal(id) FROM idem.slots");
  const std::string attempt =
      owner_.run("SELECT format('%L, %s, %L', id, fence, token) FROM idem.slots");
  EXPECT_EQ(theirs_->run("SELECT count(*) FROM idem.find(" + id + ")"), "0");
  for (const std::string& verb :
       {"try_complete(" + attempt + ", 201, '[]', '', 'r' COLLATE pg_temp.ci)",
        "try_release(" + attempt + ", 'e' COLLATE pg_temp.ci)",
        "try_advance(" + attempt + ", 'p' COLLATE pg_temp.ci)"}) {
    EXPECT_EQ(theirs_->run("SELECT verdict FROM idem." + verb), "stale") << verb;
  }
  EXPECT_EQ(
      theirs_->try_run("SELECT idem.enqueue(" + attempt + ", 'd' COLLATE pg_temp.ci, 't', '{}')"),
      "IDM01");
  // Rows that it was given the right to read are its own.
  owner_.run("GRANT SELECT ON idem.slots TO " + role_.name());
  EXPECT_EQ(theirs_->run("SELECT count(*) FROM idem.slots WHERE scope = 'acme' COLLATE pg_temp.ci"),
            "0");
  EXPECT_EQ(theirs_->run("SELECT count(*) FROM idem.slots"), "0");
}

TEST_F(SqlRestriction, V03_objects_of_its_own_temporary_schema_are_not_used) {
  theirs_->run(
      "CREATE TEMP TABLE restricted_roles (role regrole, scope text);"
      " CREATE TEMP TABLE pg_policy (polrelid oid, polroles oid[], polpermissive bool);"
      " CREATE TEMP TABLE pg_class AS SELECT * FROM pg_catalog.pg_class WHERE false;"
      " CREATE TEMP TABLE slots (id uuid, scope text);"
      " CREATE TYPE pg_temp.regclass AS (it text);"
      " CREATE FUNCTION pg_temp.current_setting(text, bool) RETURNS text LANGUAGE sql AS"
      " $$SELECT 'ACME'$$");
  EXPECT_EQ(theirs_->try_run("SELECT idem.record_id('ACME', 'pay', 'k')"), "IDM06");
  EXPECT_EQ(theirs_->run("SELECT outcome FROM idem.reserve('acme', 'pay', 'k2', 'x')"), "execute");
}

}  // namespace
}  // namespace idem::test
